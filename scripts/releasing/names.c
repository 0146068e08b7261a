// The start of a file with two programs: the name by which it was called decides which of them runs.
#include <string.h>

int sallyport_main(int count, char **arguments);
int attest_main(int count, char **arguments);

int main(int count, char **arguments) {
  const char *name = count > 0 ? arguments[0] : "";
  const char *slash = strrchr(name, '/');
  if (slash != NULL) name = slash + 1;
  return strcmp(name, "attest") == 0 ? attest_main(count, arguments) : sallyport_main(count, arguments);
}
