internal import ByteCoding
internal import Foundation
internal import HTTPClientTransport
internal import Locking
internal import MFADomain
internal import NIOCore
internal import NIOSSL

/// The SMTP dialogue that sends one mail.
struct SMTPDialogue {
  let channel: any Channel
  let outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>
  private var inbound: NIOAsyncChannelInboundStream<ByteBuffer>.AsyncIterator
  private var buffer: [UInt8] = []
  /// The number of bytes that `inbound` has given.
  private var received = 0
  /// How far the mail is, also for a caller that waits no longer.
  private let progress: LockedValue<Progress>
  private var isHandedOver: Bool { progress.withLock { $0 == .handedOver } }

  /// How far a mail is.
  enum Progress {
    /// The server does not have the whole mail, or has refused it.
    case open
    /// The server has received the whole mail and not yet replied.
    case handedOver
    /// The server has accepted the mail, or the sign-in of a probe.
    case accepted
  }

  /// The maximum length of a reply, far above that of any real reply.
  private static let longestReply = 1 << 14

  init(
    channel: any Channel, inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
    outbound: NIOAsyncChannelOutboundWriter<ByteBuffer>, progress: LockedValue<Progress>
  ) {
    self.channel = channel
    self.outbound = outbound
    self.progress = progress
    self.inbound = inbound.makeAsyncIterator()
  }

  /// Prepares a new channel for a dialogue. Called on its event loop.
  static func wrap(_ channel: any Channel) throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
    try channel.pipeline.syncOperations.addHandler(InboundByteCounter())
    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
  }

  mutating func hand(over mail: SMTPMail, by access: SMTPAccess) async throws {
    do {
      try await speak(of: mail, by: access)
    } catch  where isHandedOver {
      throw DeliveryFailure(
        reason: "no reply after the complete mail: \(Self.reason(of: error))", isTemporary: true, isDoubtful: true)
    }
  }

  private static func reason(of error: any Error) -> String {
    (error as? DeliveryFailure)?.reason ?? ConnectionFault.reason(of: error)
  }

  /// Signs in at the server and sends nothing.
  mutating func greet(by access: SMTPAccess) async throws {
    _ = try await open(access)
    progress.withLock { $0 = .accepted }
    _ = try? await say("QUIT", 221)
  }

  /// Begins the dialogue, up to the first mail, and returns what the server offers.
  private mutating func open(_ access: SMTPAccess) async throws -> SMTPOffers {
    let server = access.server
    if server.usesTLS, server.beginsWithTLS { try await startTLS(server) }
    try await expect(220)
    var offers = SMTPOffers(lines: try await say("EHLO \(access.greeting)", 250))
    if server.usesTLS, !server.beginsWithTLS {
      try await say("STARTTLS", 220)
      try await startTLS(server)
      // What was offered before TLS may come from an attacker.
      offers = SMTPOffers(lines: try await say("EHLO \(access.greeting)", 250))
    }
    try await signIn(access, offers)
    return offers
  }

  /// Signs in by a method that the server offers.
  private mutating func signIn(_ access: SMTPAccess, _ offers: SMTPOffers) async throws {
    guard let user = access.server.user, access.token != nil || access.server.password != nil else { return }
    // Each of the methods sends the secret itself, so it needs TLS.
    guard access.server.usesTLS else {
      throw DeliveryFailure(reason: "password not sent without TLS", isTemporary: false)
    }
    if let token = access.token {
      guard offers.signsIn(by: "XOAUTH2") else { throw offers.refusal("XOAUTH2") }
      let text = "user=\(user)\u{1}auth=Bearer \(try token())\u{1}\u{1}"
      try await outbound.write(ByteBuffer(string: "AUTH XOAUTH2 " + Base64.encode(Array(text.utf8)) + "\r\n"))
      // A refused token has a reply with the reason, and the code follows an empty line.
      let reply = try await reply()
      if reply.code == 334 { try await say("", 235) } else { try Self.check(reply.code, [235]) }
    } else if let password = access.server.password {
      if offers.signsIn(by: "PLAIN") {
        try await say("AUTH PLAIN " + Base64.encode(Array("\0\(user)\0\(password)".utf8)), 235)
      } else {
        guard offers.signsIn(by: "LOGIN") else { throw offers.refusal("PLAIN or LOGIN") }
        try await say("AUTH LOGIN", 334)
        try await say(Base64.encode(Array(user.utf8)), 334)
        try await say(Base64.encode(Array(password.utf8)), 235)
      }
    }
  }

  private mutating func speak(of mail: SMTPMail, by access: SMTPAccess) async throws {
    let offers = try await open(access)
    guard !mail.needsUTF8 || offers.has("SMTPUTF8") else {
      throw DeliveryFailure(
        reason: "the mail server does not offer SMTPUTF8, which an address needs", isTemporary: false)
    }
    try await say("MAIL FROM:<\(mail.sender.text)>\(mail.needsUTF8 ? " SMTPUTF8" : "")", 250)
    // 251: the user is not local, and the server forwards (RFC 5321, section 4.2.3).
    try await say("RCPT TO:<\(mail.recipient.text)>", 250, 251)
    try await say("DATA", 354)
    let id = UUID().uuidString.lowercased()
    try await outbound.write(ByteBuffer(string: mail.text(date: Date(), id: id)))
    progress.withLock { $0 = .handedOver }
    try await expect(250)
    progress.withLock { $0 = .accepted }
    // The server is responsible for the mail now, so a failed QUIT does not matter.
    _ = try? await say("QUIT", 221)
  }

  private mutating func startTLS(_ server: SMTPProvider.Server) async throws {
    var configuration = TLSConfiguration.makeClientConfiguration()
    if let authority = server.authority { configuration.trustRoots = .file(authority) }
    let context = try NIOSSLContext(configuration: configuration)
    let name = server.serverName ?? server.host
    // SNI must not contain an IP address (RFC 6066, section 3). Without a name, the certificate must contain the
    // address of the connection.
    let sni = (try? SocketAddress(ipAddress: name, port: 0)) == nil ? name : nil
    let (channel, received, isRead) = (channel, received, buffer.isEmpty)
    // Plaintext bytes after the 220 reply may come from an attacker (RFC 3207, section 4.2). Those of a later segment
    // may wait in the channel, and would be read as replies inside TLS. The event loop reads nothing between the count
    // and the handler of TLS.
    let isClean = try await channel.eventLoop.submit { () throws -> Bool in
      let pipeline = channel.pipeline.syncOperations
      guard isRead, try pipeline.handler(type: InboundByteCounter.self).count == received else { return false }
      let handler = try NIOSSLClientHandler(context: context, serverHostname: sni)
      try pipeline.addHandler(handler, position: .first)
      return true
    }.get()
    guard isClean else {
      // A server that begins without TLS although it should may be set up right later.
      throw DeliveryFailure(reason: "unexpected bytes before TLS", isTemporary: server.beginsWithTLS)
    }
  }

  /// Returns the texts of the reply's lines.
  @discardableResult
  private mutating func say(_ line: String, _ expected: Int...) async throws -> [String] {
    try await outbound.write(ByteBuffer(string: line + "\r\n"))
    let reply = try await reply()
    try Self.check(reply.code, expected)
    return reply.lines
  }

  private mutating func expect(_ expected: Int) async throws { try Self.check(await reply().code, [expected]) }

  private static func check(_ code: Int, _ expected: [Int]) throws(DeliveryFailure) {
    guard !expected.contains(code) else { return }
    let wanted = expected.map(String.init).joined(separator: " or ")
    throw DeliveryFailure(reason: "reply \(code) instead of \(wanted)", isTemporary: code / 100 == 4)
  }

  /// Reads one reply of one or more lines (RFC 5321, section 4.2.1), and returns the texts of its lines.
  private mutating func reply() async throws -> (code: Int, lines: [String]) {
    var total = 0
    var lines: [String] = []
    while true {
      let line = try await line()
      total += line.utf8.count
      guard total <= Self.longestReply, line.utf8.count >= 3, let code = Int(line.prefix(3)) else {
        throw DeliveryFailure(reason: "malformed reply", isTemporary: false)
      }
      lines.append(String(line.dropFirst(4)))
      if line.dropFirst(3).first == "-" { continue }
      progress.withLock { if $0 == .handedOver { $0 = .open } }
      return (code, lines)
    }
  }

  private mutating func line() async throws -> String {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        let line = String(decoding: buffer[..<end], as: UTF8.self)
        buffer.removeSubrange(...end)
        return line.trimmingCharacters(in: .whitespacesAndNewlines)
      }
      guard buffer.count <= Self.longestReply, let bytes = try await inbound.next() else {
        throw DeliveryFailure(reason: "the server closed the connection, or its line is too long", isTemporary: true)
      }
      received += bytes.readableBytes
      buffer += bytes.readableBytesView
    }
  }
}

/// Counts the bytes that the channel has read, also those that wait for the dialogue.
final class InboundByteCounter: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// The number of bytes. Used on the event loop only.
  private(set) var count = 0

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    count += Self.unwrapInboundIn(data).readableBytes
    context.fireChannelRead(data)
  }
}
