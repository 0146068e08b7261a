/// A reference to a channel for other threads. They may only pass it to the channel's loop.
///
/// `@unchecked Sendable`: `use` is called on the loop's thread only.
final class ClientChannelReference: @unchecked Sendable {
  private let channel: ClientChannel
  init(_ channel: ClientChannel) { self.channel = channel }

  func use(_ body: (ClientChannel) -> Void) { body(channel) }

  func close(in loop: EventLoop) {
    loop.execute { [self] loop in channel.end(.lost("closed"), in: loop) }
  }
}
