#ifndef SALLYPORT_CEARLYSIGNALS_H
#define SALLYPORT_CEARLYSIGNALS_H

// A program that links this target and is started as a service (`PROGRAM run …` or `PROGRAM dev …`) ignores SIGHUP and
// SIGUSR2 from the moment at which the dynamic linker hands over, before any initializer of a library runs. Both ask a
// running service for work; their default action would end a service that has not installed its handlers yet.
//
// Other commands keep the default actions: a terminal that hangs up ends them.

#endif
