#ifndef SALLYPORT_CSIGNALS_H
#define SALLYPORT_CSIGNALS_H

/// A descriptor that does not block, from which each signal that is caught can be read as one byte, its number; or -1
/// with `errno`. To be called once, and never closed: a handler may run at any time.
int signals_open(void);

/// From now on the signal `number` is not obeyed, but can be read. Returns 0, or -1 with `errno`.
///
/// No signal is lost between the previous disposition and this one. A byte for which the pipe has no room is lost;
/// thousands of unread ones are then left.
int signals_catch(int number);

/// 1 if the process ignores the signal `number`, else 0.
int signals_is_ignored(int number);

#endif
