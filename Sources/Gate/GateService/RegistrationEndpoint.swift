internal import AttestGate
internal import ByteCoding
internal import Wire
internal import Logging
internal import Observability
internal import Transport

/// The answers of `POST /attest/register`: a device registers its key once.
struct RegistrationEndpoint: Sendable {
  let registrar: Registrar
  let limiter: RequestLimiter
  /// Proxies that send the requests of many clients: no address limit applies to them.
  let trustedProxies: [AddressRange]
  /// Parses and verifies, on threads of its own.
  let executor: any TaskExecutor
  let announce: EventAnnouncer

  /// - Parameter closesRefused: Whether the connection may be closed after a refusal that cost the verification of a
  ///   chain of certificates: the next attempt then costs the client a handshake. An app can retry on a new connection.
  func answer(
    _ request: Request, from peer: Peer, closesRefused: Bool, in context: RequestContext
  ) async -> Response {
    do throws(RequestRefusal) {
      try limiter.spend(.registrationsPerAddress, of: peer, except: trustedProxies)
    } catch {
      return refuse(error, in: context)
    }
    // Parsing 64 KiB of JSON and verifying certificate chains takes about a millisecond, too long for an event loop.
    return await withTaskExecutorPreference(executor) {
      await register(request.body, closesRefused: closesRefused, in: context)
    }
  }

  private func register(_ body: [UInt8], closesRefused: Bool, in context: RequestContext) async -> Response {
    let claim: RegistrationBody
    do throws(RegistrationBody.ParseError) {
      claim = try RegistrationBody(json: body)
    } catch {
      return refuse(.malformedRegistration(error), in: context)
    }
    do throws(Denial) {
      let registered =
        switch claim {
        case .appAttest(let claim): try await registrar.register(claim)
        case .android(let claim): try await registrar.register(claim)
        }
      let key = KeyHash(of: registered.keyID)
      var fields = context.fields(app: registered.app, key: key)
      fields.append("repeated", registered.isRepetition)
      context.logger.log(level: .info, "key registered", fields)
      context.metrics.registered(isRepetition: registered.isRepetition)
      if !registered.isRepetition {
        announce(
          .registered(key: key.text, app: registered.app.text, platform: claim.platform, requestID: context.id))
      }
      return context.ok(json: JSONText.object(["status": "registered"]))
    } catch {
      return refuse(
        .denied(error), in: context, key: claim.claimedKey, closes: closesRefused && error.report.followsVerification)
    }
  }

  private func refuse(
    _ refusal: RequestRefusal, in context: RequestContext, key: KeyHash? = nil, closes: Bool = false
  ) -> Response {
    context.metrics.refusedRegistration(refusal.code.rawValue)
    return context.refuse(refusal, key: key, closes: closes, mayProveKey: false)
  }
}
