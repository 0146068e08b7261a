internal import Glibc

/// Checks the beginning of a ClientHello before OpenSSL reads it.
///
/// OpenSSL allocates the whole message as soon as it has read its length, and accepts a ClientHello of up to 131,396
/// bytes. Nine bytes from an unknown client would reserve that memory for the whole handshake timeout. So OpenSSL
/// never sees a ClientHello longer than `longest`, nor any other record before it. The same applies to the second
/// ClientHello, which answers a HelloRetryRequest (RFC 8446 section 4.1.2). OpenSSL itself bounds the later messages;
/// certificates are bounded by `ServerTLS.longestCertificates`.
struct ClientHelloGuard {
  /// Real ones have 200 to 2,000 bytes, including keys for post-quantum groups.
  static let longest = 16 << 10

  /// The progress of the handshake.
  enum Stage {
    /// The client has sent nothing yet.
    case first
    /// The server has sent a HelloRetryRequest.
    case second
    /// The beginning of a ClientHello is valid, and OpenSSL has not answered it yet.
    case underWay
    case answered
    /// The client has sent the method of an HTTP request in place of a ClientHello.
    case plainHTTP
  }

  enum Verdict: Equatable {
    case incomplete
    case sound
    /// The method of an HTTP request without TLS.
    case plainHTTP
    case fault(String)
  }

  var stage = Stage.first
  /// Whether the client has sent a byte.
  var hasSeenBytes = false
  /// The incomplete beginning of a ClientHello: less than a change_cipher_spec of 6 bytes, and four records of 6 bytes.
  var held: [UInt8] = []

  /// Judges whether `bytes`, everything received so far, begin a valid ClientHello.
  ///
  /// The header of the message has four bytes (section 4). Some clients divide it among records of 1 to 3 bytes, which
  /// section 5.1 allows, so that filters on the path do not see the name of the server. An empty record is not allowed,
  /// and no other record may stand between.
  func judge(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    var record = bytes
    if stage == .second, bytes.first == 20 {
      // One is allowed, for compatibility with middleboxes (appendix D.4).
      let changeCipherSpec: [UInt8?] = [20, 3, nil, 0, 1, 1]
      for (byte, wanted) in zip(bytes, changeCipherSpec) where wanted != nil && byte != wanted {
        return .fault("a malformed change_cipher_spec")
      }
      record = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(changeCipherSpec.count))
    }
    guard let type = record.first else { return .incomplete }
    if type != 22, stage == .first, let verdict = Self.judgeMethod(bytes) { return verdict }
    return Self.judgeMessage(record)
  }

  /// Judges the message header at the beginning of `records`.
  private static func judgeMessage(_ records: UnsafeRawBufferPointer) -> Verdict {
    var position = 0
    // The length of the message, and how many bytes of its header came before.
    var (length, count) = (0, 0)
    while true {
      guard position < records.count else { return .incomplete }
      let type = records[position]
      guard type == 22 else { return .fault("not a TLS handshake record: the first byte is \(type)") }
      guard position + 5 <= records.count else { return .incomplete }
      let end = position + 5 + (Int(records[position + 3]) << 8 | Int(records[position + 4]))
      position += 5
      if position == end { return .fault("an empty record in place of a ClientHello") }
      while position < end {
        guard position < records.count else { return .incomplete }
        let byte = records[position]
        if count == 0 && byte != 1 { return .fault("not a ClientHello but a handshake message of type \(byte)") }
        if count > 0 { length = length << 8 | Int(byte) }
        count += 1
        position += 1
        guard count == 4 else { continue }
        return length <= longest ? .sound : .fault("a ClientHello of \(length) bytes is too long")
      }
    }
  }

  /// Judges whether `bytes` begin an HTTP request; `nil` if they begin with no method that clients use.
  ///
  /// The first byte of a TLS record is no letter, so that no TLS client is taken for one that speaks HTTP.
  private static func judgeMethod(_ bytes: UnsafeRawBufferPointer) -> Verdict? {
    let matching = methods.filter { zip($0, bytes).allSatisfy(==) }
    if matching.contains(where: { $0.count <= bytes.count }) { return .plainHTTP }
    return matching.isEmpty ? nil : .incomplete
  }

  /// Those of RFC 9110 and RFC 5789, and the preface of HTTP/2 (RFC 9113 section 3.4), each with the blank after it.
  private static let methods = [
    "GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "CONNECT ", "OPTIONS ", "TRACE ", "PATCH ", "PRI ",
  ].map { Array($0.utf8) }

  /// Returns whether `flight`, the server's answer to a ClientHello, is a HelloRetryRequest (section 4.1.3).
  static func isRetryRequest(_ flight: UnsafeRawBufferPointer) -> Bool {
    flight.count >= 43 && flight[0] == 22 && flight[5] == 2 && flight[11..<43].elementsEqual(retryRandom)
  }

  /// The SHA-256 digest of "HelloRetryRequest".
  private static let retryRandom: [UInt8] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
    0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
  ]
}

extension SocketState {
  /// Receives like `receive(into:through:)`, for a server's handshake.
  ///
  /// If the client speaks HTTP without TLS, so does the server from then on: OpenSSL never sees such bytes.
  mutating func receive(
    greetedBy hello: inout ClientHelloGuard, into plain: UnsafeMutableRawPointer,
    through buffers: UnsafeMutablePointer<TLSBuffers>
  ) -> Reception {
    guard let tls, hello.stage != .answered else { return receive(into: plain, through: buffers) }
    let held = hello.held.count
    guard let got = fetch(into: buffers.pointee.incoming + held, TLSBuffers.incomingCapacity - held) else {
      return Reception(count: 0, ended: hasEnded)
    }
    hello.hasSeenBytes = true
    for (offset, byte) in hello.held.enumerated() {
      buffers.pointee.incoming.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
    }
    hello.held = []
    buffers.pointee.incomingStart = 0
    buffers.pointee.incomingEnd = held + got
    while hello.stage != .answered {
      if hello.stage != .underWay {
        let bytes = buffers.pointee.unread
        switch hello.judge(bytes) {
        case .incomplete:
          hello.held = Array(bytes)
          return Reception()
        case .plainHTTP:
          hello.stage = .plainHTTP
          dropTLS()
          return Reception()
        case .fault(let rule):
          failure = "TLS handshake: \(rule)"
          hasEnded = true
          return Reception(count: 0, ended: true)
        case .sound:
          hello.stage = .underWay
        }
      }
      // OpenSSL sees the bytes after a ClientHello only once it is known whether they are a second one.
      buffers.pointee.haltsBehindAnswer = true
      let reception = decrypt(tls, into: plain, through: buffers)
      buffers.pointee.haltsBehindAnswer = false
      let answer = UnsafeRawBufferPointer(start: buffers.pointee.outgoing, count: buffers.pointee.outgoingCount)
      if !answer.isEmpty { hello.stage = ClientHelloGuard.isRetryRequest(answer) ? .second : .answered }
      flush(buffers)
      // After the end of the stream OpenSSL reads nothing more.
      if reception.ended || buffers.pointee.unread.isEmpty { return reception }
    }
    let reception = decrypt(tls, into: plain, through: buffers)
    flush(buffers)
    return reception
  }
}
