internal import AttestGate
internal import ByteCoding
internal import Observability
internal import Transport

/// The head of a request to an upstream: an opening handshake or an ordinary request.
struct UpstreamHead {
  let request: Request
  let route: Route
  let peer: Peer
  let admission: Admission
  let identity: UpstreamIdentity
  let sanitizer: HeaderSanitizer
  /// The trace that the gate exports; `nil` without telemetry.
  let trace: RequestTrace?

  /// An opening handshake, from the request line to the empty line.
  var openingHandshake: [UInt8] {
    var head = lines
    head += "\r\n".utf8
    return head
  }

  /// The lines from the request line to the last field, without fields that frame a body.
  ///
  /// Target, query, `Host` and the fields of the handshake are the client's unless the route rewrites them, and so are
  /// the fields that `HeaderSanitizer` keeps, line by line as they came. The gate sets all others.
  var lines: [UInt8] {
    var head = HeadBytes(capacity: request.headers.byteCount + request.target.utf8.count + Self.ownLength)
    head.write(request.method)
    head.write(" ")
    head.write(route.rewrite.target(of: request.target, below: route.path))
    head.write(" HTTP/1.1\r\n")
    if let host = route.rewrite.host {
      head.field("Host", host)
      sanitizer.forEachKept(in: request.headers.filter { !$0.isNamed("Host") }) { head.write($0) }
    } else {
      sanitizer.forEachKept(in: request.headers) { head.write($0) }
    }
    if request.upgrade != nil { head.write("Connection: Upgrade\r\nUpgrade: websocket\r\n") }
    identity.forEach { head.field($0, $1) }
    // Sent only if the certificate admitted the client: next to an assertion it would say nothing about the device.
    if case .certificate = admission.principal, let certificate = peer.verifiedCertificate {
      head.field("Client-Cert", certificate.fieldValue)
    }
    head.field("X-Request-Id", request.id)
    writeTraceparent(to: &head)
    head.field("X-Forwarded-For", forwardedFor)
    head.write("X-Forwarded-Proto: https\r\n")
    if route.rewrite.path != nil {
      // As other proxies write it: the part of the client's path that the upstream does not see.
      if route.path != "/" { head.field("X-Forwarded-Prefix", route.path) }
      head.field("X-Forwarded-Uri", request.target)
    }
    request.headers.withFirst("Host") { host in
      head.write("X-Forwarded-Host: ")
      head.write(host)
      head.write("\r\n")
    }
    return head.bytes
  }

  /// The fields of the gate are shorter, except for an identity assertion, for which the memory grows.
  private static let ownLength = 512

  // Without telemetry, the trace begins here and uses the request id, so that logs and traces can be matched. The
  // sampled flag is set, since upstreams that follow the parent's flag would otherwise record no traces.
  private func writeTraceparent(to head: inout HeadBytes) {
    if let trace {
      head.field("traceparent", trace.upstreamContext.traceparent)
      if let state = trace.traceState { head.field("tracestate", state) }
      return
    }
    var id = request.id
    id.withUTF8 { id in
      head.write("traceparent: 00-")
      head.write(id)
      head.write("-")
      head.write(UnsafeBufferPointer(rebasing: id.suffix(16)))
      head.write("-01\r\n")
    }
  }

  // A Unix socket has no address for this field. RFC 7239 section 6.2 defines `unknown` for that case.
  private var forwardedFor: String {
    switch peer.address {
    case .ipv4, .ipv6: peer.address.host
    case .unix: "unknown"
    }
  }
}

/// Collects the pieces of a head.
private struct HeadBytes {
  private(set) var bytes: [UInt8] = []

  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  mutating func write(_ text: StaticString) {
    write(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func write(_ piece: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: piece) }

  mutating func write(_ text: String) {
    var text = text
    text.withUTF8 { write($0) }
  }

  mutating func field(_ name: String, _ value: String) {
    var (name, value) = (name, value)
    name.withUTF8 { name in
      value.withUTF8 { value in
        bytes.append(addingCapacity: name.count + value.count + 4) { line in
          line.append(name)
          line.append(": ")
          line.append(value)
          line.append("\r\n")
        }
      }
    }
  }
}
