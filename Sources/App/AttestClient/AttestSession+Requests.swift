internal import struct Foundation.URL

extension AttestSession {
  /// Sends one HTTP request through the gate, with an assertion of its own, and returns the answer of the server behind
  /// the gate, whatever its status.
  ///
  /// Registers first if necessary. The session adds the three header fields of the assertion. As with `open`, a request
  /// whose nonce, counter or key the gate refuses is sent again, at most once for each reason; the server behind the
  /// gate has then not received it. Requests are sent one after another, so that their counters arrive in order.
  ///
  /// A request whose answer was lost is not repeated: the server may have carried it out.
  ///
  /// - Parameter request: Its URL must have the scheme, host and port of the gate: an assertion is for no other server.
  /// - Throws: `.unusableAddress` if the URL is not the gate's; `.assertionFailed`, `.keyRevoked` or
  ///   `.registrationFailed` if the gate refuses; `.transport` if there was no complete answer.
  public func data(for request: HTTPRequest) async throws(AttestError) -> HTTPResponse {
    guard gate.serves(request.url) else { throw .unusableAddress(request.url.absoluteString) }
    return try await open { headers throws(UpgradeError) in
      var request = request
      request.headers += headers.fields
      let response: HTTPResponse
      do throws(TransportError) {
        response = try await self.http.send(request)
      } catch {
        throw .transport(error)
      }
      // The field is the gate's: it is in every refusal of the gate and in no other answer.
      guard response.value(of: GateRefusal.codeHeader) == nil else { throw .refused(GateRefusal(response)) }
      return response
    }
  }
}
