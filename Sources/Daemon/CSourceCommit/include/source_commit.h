#pragma once

// The commit of the sources, or an empty string. The only object file that differs from commit to commit.
const char *sallyport_source_commit(void);
