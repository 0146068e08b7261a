// A transport of one's own needs these types, and an app imports only this module.
@_exported public import Wire
