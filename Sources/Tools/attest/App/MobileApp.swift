internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import MFAClient
internal import MFAViewModels
internal import MFAWire
internal import SimulatedDevice
internal import SimulatedPhone
internal import TransportEngine

/// An app with a second factor on a device of this user. The device stays locked while the value exists.
struct MobileApp {
  let phone: SimulatedPhone
  let console: PromptConsole
  let services: DeviceServices
  /// Whether answers are printed as JSON.
  let printsJSON: Bool
  private let work: DeviceSession
  private let faults: GateFaults

  /// Opens phone and app, and registers the device with the gate if it is not.
  ///
  /// - Parameters:
  ///   - phoneNumber: The number that receives codes; `nil` for the remembered one.
  ///   - needsAccount: Whether the command names an account before the device is enrolled.
  init(_ options: AppOptions, phoneNumber: String? = nil, needsAccount: Bool = false) async throws(Failure) {
    let address = try GateURL(options.url)
    let global = options.global.forGate(at: address)
    printsJSON = global.json
    work = try await DeviceSession(global, address: address, engine: DeviceSession.makeEngine())
    let store = try global.deviceStore()
    phone = try PhoneFile(of: work.device, in: store).open()
    console = PromptConsole(phone, options.answers?.answers ?? [])
    do throws(AttestError) { try await work.session.registerIfNeeded() } catch { throw work.failure(error) }
    let place = store.appPath(
      work.device.name, GateUnderAuthority(gate: address.gateName, try global.loadAuthority()))
    let storage = FileStorageService(path: place + ".app.json")
    let record: MFARecord
    do throws(StorageError) { record = try storage.load() } catch { throw Failure(.badData, "\(error)") }
    faults = GateFaults(try LabGate.backend(by: options.by, work.session, work.transport, at: address))
    services = DeviceServices(
      keychain: phone, biometrics: phone, securityKeys: phone, backend: faults, storage: storage,
      sessions: FileSecretStorage(path: place + ".session.json"),
      trust: FileSecretStorage(path: place + ".trust.json"),
      app: AppDescription(
        bundleID: work.device.bundleID,
        username: options.user ?? record.username ?? "", phoneNumber: phoneNumber ?? record.phoneNumber,
        deviceModel: phone.settings.model))
    guard !needsAccount || !services.app.username.isEmpty else {
      throw Failure(.usage, "which account?", hint: "--user NAME; it is remembered after `attest enroll`")
    }
  }

  /// A failure of a view model, whose text is for people.
  ///
  /// - Parameters:
  ///   - needsSignIn: Whether the server asked for a session.
  ///   - advice: The offer of the app, if it has one.
  func failure(
    _ text: String?, needsSignIn: Bool = false, advice: SecurityAdvice.Action? = nil
  ) -> Failure {
    if let prompt = console.missedPrompt {
      return Failure(
        .noInput, "the phone's prompt got no answer: \(PromptConsole.title(of: prompt)): \(prompt.reason)",
        hint: "--answers approve answers it; several are separated by commas")
    }
    // The gate's refusals have the statuses and hints of the other commands.
    if let fault = faults.last { return work.failure(fault) }
    if let refusal = faults.lastRefusal, refusal.isFailure {
      return Failure(
        .unavailable, text ?? refusal.message,
        hint: "try again later; the backend's log has the request \(refusal.requestID)")
    }
    let signIn = needsSignIn ? "`attest signin URL` begins a session, which the server asks for" : nil
    return Failure(.refused, text ?? "refused", hint: hintForRefusal ?? signIn ?? advice.flatMap(hint))
  }

  /// The code of the backend's last refusal; `nil` if the last request was not refused.
  var lastRefusalCode: String? { faults.lastRefusal?.code }

  /// The command for the second factor that the last refusal asks for; `nil` for other refusals.
  private var hintForRefusal: String? {
    guard let code = lastRefusalCode else { return nil }
    switch code {
    case "mfa_required" where services.sessions.load()?.scope == "mfa_setup":
      return "`attest factor setup URL` sets up the second factor that the account must have"
    case "mfa_required":
      return "`attest verify URL CODE` gives the second factor, `attest verify URL --kind security-key` by a key"
    case "device_mismatch":
      return
        "another attested key enrolled this device: `attest enroll URL --user NAME --device OTHER` enrols another one"
    case "not_enabled":
      return "codes need an authenticator: `attest factor setup URL` sets one up; `attest factor keys URL` lists keys"
    default: return nil
    }
  }

  /// The commands that do what the app offers.
  private func hint(for advice: SecurityAdvice.Action) -> String? {
    switch advice {
    // The command may have found that the server has removed the device.
    case .enrollAgain where (try? services.storage.load().isEnrolled) != true:
      "`attest enroll URL --user NAME` enrols it"
    case .enrollAgain:
      "`attest downgrade URL` lets the device sign in by codes; then `attest upgrade URL` gives it a key again"
    case .blockAndOfferSMS:
      "`attest downgrade URL` lets the device sign in by codes, and `attest phone set --passcode on` lets it have keys"
    case .offerPasscode, .usePasscode, .retry: nil
    }
  }
}

/// A backend, and why the last call did not reach it: a view model has only a text for that.
private struct GateFaults: MFABackend {
  private let backend: any MFABackend
  private let fault = Shared<AttestError?>(nil)
  private let refusal = Shared<BackendRefusal?>(nil)

  init(_ backend: any MFABackend) { self.backend = backend }

  var last: AttestError? { fault.get() }
  var lastRefusal: BackendRefusal? { refusal.get() }

  func call<Request, Response>(
    _ operation: WireOperation<Request, Response>, _ request: Request, token: String?
  ) async throws(NetworkError) -> Response {
    do throws(NetworkError) {
      let response = try await backend.call(operation, request, token: token)
      fault.set(nil)
      refusal.set(nil)
      return response
    } catch {
      if case .gate(let reason) = error { fault.set(reason) } else { fault.set(nil) }
      if case .refused(let reason) = error { refusal.set(reason) } else { refusal.set(nil) }
      throw error
    }
  }
}

extension DeviceStore {
  /// The beginning of the paths of an app's files, for the backend behind `gate`.
  func appPath(_ name: String, _ gate: GateUnderAuthority) -> String { "\(folder(name))/gates/\(gate.fileName)" }
}
