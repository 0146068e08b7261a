#if canImport(Combine)
  public import Combine

  /// The state of a view model, for SwiftUI: a view that observes this object is drawn again after each change.
  ///
  /// ```swift
  /// let state = ObservedState(EnrollmentState(), from: await model.states())
  /// ```
  ///
  /// Follows the stream until it ends or the object is released.
  @MainActor
  public final class ObservedState<State: Sendable>: ObservableObject {
    /// The last state of the stream.
    @Published public private(set) var value: State

    private var task: Task<Void, Never>?

    /// Follows `states`, which is `initial` until the stream yields.
    public init(_ initial: State, from states: AsyncStream<State>) {
      value = initial
      task = Task { [weak self] in
        for await state in states { self?.value = state }
      }
    }

    deinit { task?.cancel() }
  }
#endif
