// A declaration for type checks, not an implementation. The compiler accepts a class as Objective-C's NSObject only from
// a header.
#pragma clang assume_nonnull begin
__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)alloc;
- (instancetype)init;
@end
#pragma clang assume_nonnull end
