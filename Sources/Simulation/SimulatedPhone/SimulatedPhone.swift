internal import Cryptography
internal import Locking
package import MFAClient

/// A phone that obeys: its owner sets a passcode, enrolls a face or answers a prompt when a test or a page says so.
///
/// It stands in for the keychain, the Secure Enclave and LocalAuthentication of an iPhone. Nothing sleeps, and
/// nothing is random except keys: a prompt waits until it is answered. Private keys cannot be read.
///
/// Calls from several tasks are safe. Prompts are answered in any order.
public final class SimulatedPhone: Sendable {
  /// The purpose string that iOS shows when it asks for Face ID.
  public static let faceIDPurpose =
    "We use Face ID to securely authenticate your identity for account access."

  /// Biometry is locked after this number of wrong faces or fingers in a row, until the passcode is entered.
  public static let failuresUntilLockout = 5
  /// A prompt for biometry gives up after this number of wrong faces or fingers.
  static let failuresOfPrompt = 3

  /// So many deleted keys can still be used to judge a server.
  static let mostDeletedKeys = 16

  private let state: LockedValue<State>
  /// Saves the phone; `nil` for a phone that ends with the process.
  private let write: (@Sendable (SavedPhone) throws -> Void)?
  /// Guards the order of what is saved.
  private let saving = LockedValue(())

  /// A phone without keys and prompts.
  public init(_ settings: PhoneSettings = .faceID) {
    state = LockedValue(State(settings: settings))
    write = nil
  }

  /// A phone that is saved after each change of its settings and keys.
  ///
  /// - Parameter write: Makes what it gets durable. Called one at a time.
  package init(_ saved: SavedPhone, write: @escaping @Sendable (SavedPhone) throws -> Void) throws {
    state = LockedValue(try saved.state())
    self.write = write
  }

  /// Saves the phone as it is now.
  ///
  /// A change of its owner that cannot be saved is passed over until the next change. A program that reports the change
  /// calls this first.
  ///
  /// - Throws: What the storage throws.
  package func save() throws {
    guard let write else { return }
    try saving.withLock { _ in try write(try SavedPhone(state.withLock(\.self))) }
  }

  /// Saves the phone after a change of its owner. If that fails, the next change saves it.
  private func saveIfPossible() { try? save() }

  // MARK: Settings

  /// What is set up now.
  public var settings: PhoneSettings { state.withLock { $0.settings } }

  /// Whether biometry is locked after too many wrong faces or fingers.
  public var isLockedOut: Bool { state.withLock { $0.isLockedOut } }

  /// Changes what the owner finds in the Settings app and what a test chooses. Keys stay.
  public func configure(_ change: @Sendable (inout PhoneSettings) -> Void) {
    state.withLock { change(&$0.settings) }
    saveIfPossible()
  }

  /// Sets a passcode.
  public func setPasscode() { configure { $0.isPasscodeSet = true } }

  /// Removes the passcode. All keys are deleted, biometry is off, and prompts are dismissed.
  public func removePasscode() {
    dismiss(
      state.withLock { state in
        state.settings.isPasscodeSet = false
        state.settings.isBiometryEnrolled = false
        state.enrolments += 1
        state.failures = 0
        state.retire(state.keys.values.map(\.self))
        state.keys = [:]
        return state.removePrompts { _ in true }
      })
    saveIfPossible()
  }

  /// Enrolls a face or a finger, also in addition to others. Keys of `.biometryCurrentSet` become invalid.
  ///
  /// - Returns: `false`, and nothing has changed, if the phone has no sensor or no passcode.
  @discardableResult
  public func enrollBiometry() -> Bool {
    let isEnrolled = state.withLock { state in
      guard state.settings.isPasscodeSet, state.settings.biometry != .none else { return false }
      state.settings.isBiometryEnrolled = true
      state.enrolments += 1
      return true
    }
    saveIfPossible()
    return isEnrolled
  }

  /// Removes all faces and fingers. Keys of `.biometryCurrentSet` become invalid. Prompts for biometry are dismissed.
  public func removeBiometry() {
    dismiss(
      state.withLock { state in
        state.settings.isBiometryEnrolled = false
        state.enrolments += 1
        return state.removePrompts { if case .biometry = $0.kind { true } else { false } }
      })
    saveIfPossible()
  }

  private func dismiss(_ prompts: [CheckedContinuation<PromptAnswer, Never>]) {
    for prompt in prompts { prompt.resume(returning: .interrupt(.systemCancel)) }
  }

  // MARK: Prompts

  /// The prompts that wait for an answer, oldest first.
  public var prompts: [Prompt] { state.withLock { $0.waiting.map(\.prompt) } }

  /// All prompts that were shown, oldest first, also those that planned answers have answered.
  public var shownPrompts: [Prompt] { state.withLock { $0.shown } }

  /// Answers the prompts to come, each at once, in this order.
  public func plan(_ answers: PromptAnswer...) { state.withLock { $0.planned += answers } }

  /// Answers the prompt with the identifier `id`.
  ///
  /// - Returns: `false` if the prompt does not wait any more.
  @discardableResult
  public func answer(_ id: Prompt.ID, with answer: PromptAnswer) -> Bool {
    let waiting = state.withLock { state in state.removePrompts { $0.id == id }.first }
    waiting?.resume(returning: answer)
    return waiting != nil
  }

  /// Each prompt that is shown from now on and waits for an answer, preceded by those that wait already.
  public func promptUpdates() -> AsyncStream<Prompt> {
    let (stream, observer) = AsyncStream.makeStream(of: Prompt.self)
    let id = state.withLock { state in
      for waiting in state.waiting { observer.yield(waiting.prompt) }
      state.lastObserver += 1
      state.observers[state.lastObserver] = observer
      return state.lastObserver
    }
    observer.onTermination = { [weak self] _ in self?.state.withLock { $0.observers[id] = nil } }
    return stream
  }

  func show(_ kind: Prompt.Kind, reason: String) async -> PromptAnswer {
    let prompt = state.withLock { $0.makePrompt(kind, reason: reason) }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer = state.withLock { state -> PromptAnswer? in
          if Task.isCancelled { return .interrupt(.appCancel) }
          if !state.planned.isEmpty { return state.planned.removeFirst() }
          state.waiting.append(WaitingPrompt(prompt: prompt, continuation: continuation))
          for observer in state.observers.values { observer.yield(prompt) }
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      answer(prompt.id, with: .interrupt(.appCancel))
    }
  }

  // MARK: Unlocking

  /// Shows the prompts that `unlock` needs, and returns when the owner has approved.
  func approve(_ unlock: Unlock, reason: String) async throws(DeviceSecurityError) {
    guard settings.isPasscodeSet else { throw .localAuthentication(.passcodeNotSet) }
    if unlock.acceptsBiometry {
      try await askPermission()
      if try await isApprovedByBiometry(unlock, reason: reason) { return }
    }
    try await enterPasscode(reason: reason)
  }

  /// Asks once whether the app may use Face ID.
  private func askPermission() async throws(DeviceSecurityError) {
    let isAsked = state.withLock { state in
      state.settings.biometry == .faceID && state.settings.allowsBiometry && state.settings.permission == .notAsked
    }
    guard isAsked else { return }
    let answer = await show(.faceIDPermission, reason: Self.faceIDPurpose)
    if case .interrupt(let code) = answer { throw .localAuthentication(code) }
    let refusal = state.withLock { state in
      state.settings.permission = answer == .approve ? .allowed : .denied
      return answer == .approve ? nil : state.settings.permissionRefusal.code
    }
    saveIfPossible()
    if let refusal { throw .localAuthentication(refusal) }
  }

  /// Returns `false` if the passcode is to be asked for instead.
  private func isApprovedByBiometry(_ unlock: Unlock, reason: String) async throws(DeviceSecurityError) -> Bool {
    for attempt in 1... {
      if let obstacle = state.withLock(\.obstacle) {
        guard unlock.acceptsPasscode else { throw .localAuthentication(obstacle) }
        return false
      }
      switch await show(.biometry(settings.biometry), reason: reason) {
      case .approve:
        noteFailures { $0 = 0 }
        return true
      case .fail:
        noteFailures { $0 += 1 }
        guard attempt == Self.failuresOfPrompt else { continue }
        guard unlock.acceptsPasscode else { throw .localAuthentication(.authenticationFailed) }
        return false
      case .usePasscode:
        guard unlock.acceptsPasscode else { throw .localAuthentication(.userFallback) }
        return false
      case .decline: throw .localAuthentication(.userCancel)
      case .interrupt(let code): throw .localAuthentication(code)
      }
    }
    return false
  }

  /// Changes the number of wrong faces or fingers in a row. A lockout outlasts the process, so the number is saved.
  private func noteFailures(_ change: (inout Int) -> Void) {
    let hasChanged = state.withLock { state in
      let former = state.failures
      change(&state.failures)
      return state.failures != former
    }
    if hasChanged { saveIfPossible() }
  }

  private func enterPasscode(reason: String) async throws(DeviceSecurityError) {
    while true {
      switch await show(.passcode, reason: reason) {
      case .approve:
        // The passcode also ends a lockout.
        noteFailures { $0 = 0 }
        return
      case .fail, .usePasscode: continue
      case .decline: throw .localAuthentication(.userCancel)
      case .interrupt(let code): throw .localAuthentication(code)
      }
    }
  }

  // MARK: Keys

  /// The key with the tag, and the number of the present enrolment of biometry.
  func storedKey(_ tag: KeyTag) -> (key: StoredKey?, enrolment: Int) {
    state.withLock { ($0.keys[tag], $0.enrolments) }
  }

  /// Replaces or deletes the key with the tag.
  ///
  /// - Throws: `.keychain` with `errSecWrPerm` if the phone cannot be saved: the keys are then as before.
  func replaceKey(_ tag: KeyTag, by key: StoredKey?) throws(DeviceSecurityError) {
    let former = state.withLock { state in
      defer { state.keys[tag] = key }
      return state.keys[tag]
    }
    guard former != nil || key != nil else { return }
    do {
      try save()
      if let former { state.withLock { $0.retire([former]) } }
    } catch {
      state.withLock { $0.keys[tag] = former }
      throw .keychain(status: -61)
    }
  }

  /// The credentials of the security key, the newest last.
  var credentials: [SecurityCredential] { state.withLock(\.credentials) }

  /// Counts a signature by the credential with this identifier, and returns it with its new count: no two signatures
  /// have the same. `nil` if there is no such credential.
  ///
  /// - Throws: What the storage throws: the count is then not used again.
  func countSignature(by id: String) throws -> SecurityCredential? {
    let counted = state.withLock { state -> SecurityCredential? in
      guard let index = state.credentials.firstIndex(where: { $0.id == id }) else { return nil }
      var credential = state.credentials.remove(at: index)
      credential.count &+= 1
      // The one that was used last is offered first.
      state.credentials.append(credential)
      return credential
    }
    try save()
    return counted
  }

  /// Adds `credential`.
  ///
  /// - Throws: What the storage throws: the credentials are then as before.
  func keep(_ credential: SecurityCredential) throws {
    let former = state.withLock { state in
      defer { state.credentials.append(credential) }
      return state.credentials
    }
    do {
      try save()
    } catch {
      state.withLock { $0.credentials = former }
      throw error
    }
  }

  // MARK: Judging a server

  /// The public halves of all keys, sorted by their tags.
  package var keys: [KeyPair] {
    state.withLock { $0.keys.values.map(\.pair).sorted { $0.tag.rawValue < $1.tag.rawValue } }
  }

  /// The public halves of the last keys that were deleted or replaced, oldest first.
  package var deletedKeys: [KeyPair] { state.withLock { $0.deletedKeys.map(\.pair) } }

  /// Signs with a key that the app has deleted, as a thief of the key would: only to find out whether a server refuses
  /// it. Shows no prompt. Returns `nil` for a key that is not among `deletedKeys`.
  package func signature(ofDeleted key: KeyPair, over message: [UInt8]) -> [UInt8]? {
    let stored = state.withLock { state in state.deletedKeys.first { $0.pair == key } }
    return try? stored?.privateKey.signature(for: message)
  }
}

/// What the owner may unlock with.
struct Unlock {
  var acceptsBiometry: Bool
  var acceptsPasscode: Bool
}

/// A key of the phone. The private half has no way out.
struct StoredKey: Sendable {
  let pair: KeyPair
  let privateKey: P256PrivateKey
  /// The number of the enrolment of biometry at which the key was made.
  let enrolment: Int
}

struct WaitingPrompt: Sendable {
  let prompt: Prompt
  let continuation: CheckedContinuation<PromptAnswer, Never>
}

extension SimulatedPhone {
  /// All that changes on a phone.
  struct State: Sendable {
    var settings: PhoneSettings
    var keys: [KeyTag: StoredKey] = [:]
    /// Those of the security key, which is a thing of its own: they stay when the phone loses its passcode.
    var credentials: [SecurityCredential] = []
    /// The last keys that were deleted.
    var deletedKeys: [StoredKey] = []
    /// The number of changes of the enrolled faces and fingers.
    var enrolments = 0
    /// Wrong faces and fingers in a row.
    var failures = 0
    var waiting: [WaitingPrompt] = []
    var shown: [Prompt] = []
    var planned: [PromptAnswer] = []
    var observers: [Int: AsyncStream<Prompt>.Continuation] = [:]
    var lastObserver = 0

    init(settings: PhoneSettings) { self.settings = settings }

    var isLockedOut: Bool { failures >= SimulatedPhone.failuresUntilLockout }

    /// Why biometry cannot be used; `nil` if it can.
    var obstacle: LocalAuthenticationCode? {
      if !settings.isPasscodeSet { return .passcodeNotSet }
      if settings.biometry == .none || settings.permission == .denied { return .biometryNotAvailable }
      if !settings.isBiometryEnrolled { return .biometryNotEnrolled }
      return isLockedOut ? .biometryLockout : nil
    }

    mutating func retire(_ keys: [StoredKey]) {
      deletedKeys = (deletedKeys + keys).suffix(SimulatedPhone.mostDeletedKeys)
    }

    mutating func makePrompt(_ kind: Prompt.Kind, reason: String) -> Prompt {
      let prompt = Prompt(id: shown.count + 1, kind: kind, reason: reason)
      shown.append(prompt)
      return prompt
    }

    mutating func removePrompts(where matches: (Prompt) -> Bool) -> [CheckedContinuation<PromptAnswer, Never>] {
      let removed = waiting.filter { matches($0.prompt) }
      waiting.removeAll { matches($0.prompt) }
      return removed.map(\.continuation)
    }
  }
}
