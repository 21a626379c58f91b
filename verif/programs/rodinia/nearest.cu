#include <cstdio>
#include <cstring>
#include <cmath>
#include <cstdlib>
#include <vector>
#include <string>
#include <algorithm>
#include <float.h>

#define lesser( a, b )		( (a) < (b) ? (a) : (b) )
#define blocksFor( a, b )		( ( (a) - 1 ) / (b) + 1 )
#define show( x )			printf( #x ": %lu\n", (unsigned long) x )
#define VERBOSE				false

#define WANTED_THREADS 256
#define LINE_LENGTH 49 // a line of the data base: name, latitude, longitude

typedef struct place_at
{
	float lat;
	float lng;
} Place;

typedef struct entry
{
	char text[LINE_LENGTH];
	float distance;
} Entry;

int readPlaces(const char *filename, std::vector<Entry> &entries, std::vector<Place> &locations);
void keepNearest(std::vector<Entry> &entries, const std::vector<float> &distances, int count, int topN);
void help();
int options(int argc, char *argv[], std::string &file, int *r, float *lat, float *lng, int *q);

/**
* One entry per thread; more blocks along y than fit along x.
*/
__global__ void haversine(const Place *d_locations, float *d_distances, int count, float lat, float lng)
{
	int mine = blockDim.x * ( gridDim.x * blockIdx.y + blockIdx.x ) + threadIdx.x; // row-major
	const float radians = 0.01745329252f;
	if (mine < count) {
		const Place *here = d_locations+mine;
		float a = sinf((lat - here->lat) * radians * 0.5f), b = sinf((lng - here->lng) * radians * 0.5f);
		float h = a*a + cosf(lat*radians) * cosf(here->lat*radians) * b*b;
		d_distances[mine] = 12742.0f * asinf(sqrtf(h < 1.0f ? h : 1.0f));
	}
}

int main(int argc, char* argv[])
{
	float lat = 30, lng = 90;
	int quiet=0, wanted=10;
	std::vector<Entry> entries;
	std::vector<Place> locations;
	std::string filename;

	if (options(argc, argv, filename, &wanted, &lat, &lng, &quiet)) {
		help();
		return 0;
	}
	int count = readPlaces(filename.c_str(),entries,locations);
	if (wanted > count) wanted = count;

	Place *d_locations;
	float *d_distances;
	std::vector<float> distances(count);

	cudaDeviceProp deviceProp;
	cudaGetDeviceProperties( &deviceProp, 0 );
	unsigned long maxGridX = deviceProp.maxGridSize[0];
	unsigned long threads = lesser( deviceProp.maxThreadsPerBlock, WANTED_THREADS );
	unsigned long blocks = blocksFor( count, threads );
	unsigned long gridY = blocksFor( blocks, maxGridX );
	unsigned long gridX = blocksFor( blocks, gridY );
	dim3 gridDim( gridX, gridY );

	if ( VERBOSE )
	{
		show( threads );
		show( blocks );
		show( gridX );
		show( gridY );
	}

	cudaMalloc((void **) &d_locations,sizeof(Place) * count);
	cudaMalloc((void **) &d_distances,sizeof(float) * count);
	cudaMemcpy( d_locations, &locations[0], sizeof(Place) * count, cudaMemcpyHostToDevice);

	haversine<<< gridDim, threads >>>(d_locations,d_distances,count,lat,lng);
	cudaDeviceSynchronize();

	cudaMemcpy( &distances[0], d_distances, sizeof(float)*count, cudaMemcpyDeviceToHost );
	keepNearest(entries,distances,count,wanted);

	if (!quiet)
		for(int i=0;i<wanted;i++)
			printf("%s --> Distance=%f km\n",entries[i].text,entries[i].distance);
	cudaFree(d_locations);
	cudaFree(d_distances);
	return 0;
}

int readPlaces(const char *filename, std::vector<Entry> &entries, std::vector<Place> &locations)
{
	FILE *fp = fopen(filename, "r");
	if(!fp) {
		printf("error opening data base %s\n", filename);
		exit(1);
	}
	Entry entry;
	Place place;
	char name[LINE_LENGTH], line[128];
	while (fgets(line, sizeof line, fp)) {
		if (sscanf(line, "%30s %f %f", name, &place.lat, &place.lng) != 3) continue;
		strncpy(entry.text, line, LINE_LENGTH - 1);
		entry.text[LINE_LENGTH - 1] = '\0';
		entry.text[strcspn(entry.text, "\n")] = '\0';
		entries.push_back(entry);
		locations.push_back(place);
	}
	fclose(fp);
	if (entries.empty()) { printf("'%s' is empty }{\n", filename); exit(1); }
	return (int) entries.size();
}

void keepNearest(std::vector<Entry> &entries, const std::vector<float> &distances, int count, int topN)
{
	for (int i = 0; i < count; i++) entries[i].distance = distances[i];
	std::partial_sort(entries.begin(), entries.begin() + topN, entries.end(),
		[](const Entry &a, const Entry &b) { return a.distance < b.distance; });
}

int options(int argc, char *argv[], std::string &file, int *r, float *lat, float *lng, int *q)
{
	if (argc < 2) return 1;
	file = argv[1];
	for(int i=2;i<argc;i++) {
		if (argv[i][0]!='-') return 1;
		switch (argv[i][1])
		{
			case 'r': i++; if (i >= argc) return 1; *r = atoi(argv[i]); break;
			case 'l':
				if (++i >= argc) return 1;
				if(argv[i-1][2]=='a') *lat = atof(argv[i]);
				else *lng = atof(argv[i]);
				break;
			case 'q': *q = 1; break;
			case 'h': default: return 1;
		}
	}
	return *lat > 90 || *lat < -90 || *lng > 180 || *lng < -180 || *r <= 0;
}

void help()
{
	printf("Nearest places\n"
		"\n"
		"nearest [file] -r [int] -lat [float] -lng [float] [-hq]\n"
		"\n"
		"    haversine<<<grid, block>>> finds the distance to every place { name lat lng }\n"
		"    -r    the number of places (10)\n"
		"    -q    quiet\n");
}
