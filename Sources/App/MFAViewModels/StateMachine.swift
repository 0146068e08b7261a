/// The rules of a screen: an event changes the state and asks for at most one effect. It performs nothing itself.
protocol StateMachine: Sendable {
  associatedtype State: Sendable, Equatable
  associatedtype Event: Sendable
  associatedtype Effect: Sendable

  var state: State { get }

  /// Applies `event`. An event that does not fit the state changes nothing: a button may be tapped twice.
  mutating func apply(_ event: Event) -> Effect?
}

/// A view model that follows a machine: it performs the machine's effects, and reports what came of them.
protocol MachineDriven: Actor {
  associatedtype Machine: StateMachine

  var machine: Machine { get set }
  nonisolated var publisher: StatePublisher<Machine.State> { get }

  /// Performs `effect` and returns what came of it, if the machine must know.
  func perform(_ effect: Machine.Effect) async -> Machine.Event?
}

extension MachineDriven {
  /// Handles `event` and all that follows from it.
  func handle(_ event: Machine.Event) async {
    var next: Machine.Event? = event
    while let event = next {
      let effect = apply(event)
      next = nil
      if let effect { next = await perform(effect) }
    }
  }

  /// Applies `event` and publishes the state if it has changed.
  func apply(_ event: Machine.Event) -> Machine.Effect? {
    let before = machine.state
    let effect = machine.apply(event)
    if machine.state != before { publisher.publish(machine.state) }
    return effect
  }
}
