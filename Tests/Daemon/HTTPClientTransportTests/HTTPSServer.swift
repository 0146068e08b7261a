import Foundation
import TestSupport

/// A server with TLS on a port of loopback, whose certificate is for the names of a test. It answers each request with
/// its method, target and fields as JSON.
final class HTTPSServer: Sendable {
  let port: UInt16
  /// A PEM file with the certificate, which signs itself.
  let authorityFile: String
  private let process: ChildProcess

  private static let script = """
    import http.server, json, ssl, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        def do_GET(self):
            length = int(self.headers.get("Content-Length") or 0)
            request = {"line": self.requestline, "fields": dict(self.headers), "body": self.rfile.read(length).decode()}
            body = json.dumps(request).encode()
            print("request " + self.requestline, flush=True)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        do_POST = do_GET
        def log_message(self, *arguments): pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    """

  /// The request lines so far.
  var requests: [String] { process.output.lines.filter { $0.hasPrefix("request ") } }

  /// - Parameters:
  ///   - names: As in a subjectAltName of OpenSSL: `DNS:example.com,IP:192.0.2.1`.
  ///   - folder: For the certificate and its key.
  init(_ names: String, in folder: String) async throws {
    authorityFile = folder + "/server.pem"
    try await Self.makeCertificate(names, at: authorityFile, key: folder + "/server.key")
    process = try ChildProcess(
      Places.tool("python3"), ["-c", Self.script, authorityFile, folder + "/server.key"], in: folder)
    port = UInt16(try await process.output.first("the port") { UInt16($0) != nil }) ?? 0
  }

  static func makeCertificate(_ names: String, at file: String, key: String) async throws {
    let run = try await ChildProcess.run(
      Places.tool("openssl"),
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=x",
        "-addext", "subjectAltName=\(names)", "-keyout", key, "-out", file,
      ])
    guard run.exit == .code(0) else { throw CertificateFault(text: run.errors.joined(separator: "\n")) }
  }

  struct CertificateFault: Error { let text: String }

  func stop() { process.kill() }
}
