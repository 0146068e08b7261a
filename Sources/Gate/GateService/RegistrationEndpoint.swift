internal import AttestGate
internal import ByteCoding
internal import GateWire
internal import Logging
internal import Observability
internal import Transport

/// The answers of `POST /attest/register`: a device registers its key once.
struct RegistrationEndpoint: Sendable {
  let registrar: Registrar
  let limiter: RequestLimiter
  /// Parses and verifies, on threads of its own.
  let executor: any TaskExecutor
  let announce: EventAnnouncer

  func answer(_ request: Request, from peer: Peer, in context: RequestContext) async -> Response {
    do throws(RequestRefusal) {
      try limiter.spend(.registrationsPerAddress, of: peer)
    } catch {
      return refuse(error, in: context)
    }
    // Parsing 64 KiB of JSON and verifying certificate chains takes about a millisecond, too long for an event loop.
    return await withTaskExecutorPreference(executor) {
      await register(request.body, in: context)
    }
  }

  private func register(_ body: [UInt8], in context: RequestContext) async -> Response {
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
      return refuse(.denied(error), in: context, key: claim.claimedKey)
    }
  }

  private func refuse(_ refusal: RequestRefusal, in context: RequestContext, key: KeyHash? = nil) -> Response {
    context.metrics.refusedRegistration(refusal.code.rawValue)
    return context.refuse(refusal, key: key, mayProveKey: false)
  }
}
