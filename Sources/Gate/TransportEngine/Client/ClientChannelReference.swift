/// A channel as other threads hold it: they may pass it on to its loop, and nothing else.
///
/// `@unchecked Sendable`: `use` is called on the loop's thread alone.
final class ClientChannelReference: @unchecked Sendable {
  private let channel: ClientChannel
  init(_ channel: ClientChannel) { self.channel = channel }

  func use(_ body: (ClientChannel) -> Void) { body(channel) }

  func close(in loop: EventLoop) {
    loop.execute { [self] loop in channel.end(.lost("closed"), in: loop) }
  }
}
