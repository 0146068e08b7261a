#include "CLinux.h"

#include <sys/stat.h>

uint32_t file_mode(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 ? status.st_mode : 0;
}
