internal import AttestGate
internal import Telemetry
internal import Transport

/// The head of a request to an upstream: an opening handshake or an ordinary request.
struct UpstreamHead {
  let request: Request
  let peer: Peer
  let admission: Admission
  let identity: UpstreamIdentity
  let sanitizer: HeaderSanitizer
  /// The trace that the gate exports; `nil` without telemetry.
  let trace: RequestTrace?

  /// An opening handshake, from the request line to the empty line.
  var openingHandshake: [UInt8] { lines + "\r\n".utf8 }

  /// The lines from the request line to the last field, without fields that frame a body.
  ///
  /// Target, query, `Host` and the fields of the handshake are the client's, and so are the fields that
  /// `HeaderSanitizer` keeps. The gate sets all others.
  var lines: [UInt8] {
    var head = HeadBytes()
    head.write(request.method)
    head.write(" ")
    head.write(request.target)
    head.write(" HTTP/1.1\r\n")
    sanitizer.forEachKept(in: request.headers) { head.field($0.name, $0.value) }
    if request.upgrade != nil { head.write("Connection: Upgrade\r\nUpgrade: websocket\r\n") }
    identity.forEach { head.field($0, $1) }
    // Sent only if the certificate admitted the client: next to an assertion it would say nothing about the device.
    if case .certificate = admission.principal, let certificate = peer.verifiedCertificate {
      head.field("Client-Cert", certificate.fieldValue)
    }
    head.field("X-Request-Id", request.id)
    head.field("traceparent", traceparent)
    head.field("X-Forwarded-For", forwardedFor)
    head.write("X-Forwarded-Proto: https\r\n")
    if let host = request.headers.first("Host") { head.field("X-Forwarded-Host", host) }
    return head.bytes
  }

  // Without telemetry, the trace begins here and uses the request id, so that logs and traces can be matched. The
  // sampled flag is set, since upstreams that follow the parent's flag would otherwise record no traces.
  private var traceparent: String {
    trace?.upstreamContext.traceparent ?? "00-\(request.id)-\(request.id.suffix(16))-01"
  }

  // A Unix socket has no address for this field. RFC 7239 section 6.2 defines `unknown` for that case.
  private var forwardedFor: String {
    switch peer.address {
    case .ipv4, .ipv6: peer.address.host
    case .unix: "unknown"
    }
  }
}

/// Collects the lines of a head.
private struct HeadBytes {
  private(set) var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(2048) }

  mutating func write(_ text: StaticString) {
    bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func write(_ text: String) {
    var text = text
    text.withUTF8 { bytes.append(contentsOf: $0) }
  }

  mutating func field(_ name: String, _ value: String) {
    write(name)
    write(": ")
    write(value)
    write("\r\n")
  }
}
