import Locking
import MFADomain
import NIOCore
import NIOPosix
import Testing

@testable import MFADelivery

@Suite("Plaintext before TLS", .timeLimit(.minutes(1)))
struct SMTPInjectionTests {
  /// Signs in at a server whose `segments` are read in one turn of the event loop, and returns the failure.
  private func failure(of segments: [String], beginsWithTLS: Bool = false) async throws -> DeliveryFailure? {
    // The server itself sends nothing.
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let port = try #require(listener.localAddress?.port)
    let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture { try SMTPDialogue.wrap(channel) }
      }
    let server = SMTPProvider.Server(host: "127.0.0.1", port: port, beginsWithTLS: beginsWithTLS)
    let access = SMTPAccess(server: server, greeting: "client.example", token: nil)
    let failure: DeliveryFailure? = try await connection.executeThenClose { inbound, outbound in
      let channel = connection.channel
      try await channel.eventLoop.submit {
        for segment in segments { channel.pipeline.fireChannelRead(ByteBuffer(string: segment)) }
        channel.pipeline.fireChannelReadComplete()
      }.get()
      var dialogue = SMTPDialogue(
        channel: channel, inbound: inbound, outbound: outbound, progress: LockedValue(.open))
      do {
        try await dialogue.greet(by: access)
        return nil
      } catch let failure as DeliveryFailure {
        return failure
      }
    }
    try await listener.close()
    return failure
  }

  private static let refusal = DeliveryFailure(reason: "unexpected bytes before TLS", isTemporary: false)

  @Test(
    "bytes after the reply to STARTTLS are refused, in the same segment and in a later one",
    arguments: [
      ["220 mail\r\n", "250 STARTTLS\r\n", "220 go\r\n250 AUTH PLAIN\r\n221 bye\r\n"],
      ["220 mail\r\n", "250 STARTTLS\r\n", "220 go\r\n", "250 AUTH PLAIN\r\n", "221 bye\r\n"],
      ["220 mail\r\n", "250 STARTTLS\r\n", "220-go\r\n", "220 on\r\n", "2"],
    ])
  func injected(_ segments: [String]) async throws {
    #expect(try await failure(of: segments) == Self.refusal)
  }

  @Test("bytes before TLS that begins with the connection are no replies either")
  func implicit() async throws {
    let failure = try await failure(of: ["220 mail\r\n", "250 AUTH PLAIN\r\n"], beginsWithTLS: true)
    #expect(failure == DeliveryFailure(reason: "unexpected bytes before TLS", isTemporary: true))
  }
}
