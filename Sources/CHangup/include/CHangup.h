#ifndef SALLYPORT_CHANGUP_H
#define SALLYPORT_CHANGUP_H

// A program that has this target among its dependencies ignores SIGHUP from its start on when its first argument is
// `run`. Nothing needs to be called.

#endif
