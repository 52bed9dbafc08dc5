/**
 * A state machine is a table: state → event → next state and the actions on the way, as in the
 * figures of RFC 3261 §17. An event that a state does not list is ignored there.
 */
export interface Step<State extends string, Action extends string> {
  readonly to: State
  readonly do: readonly Action[]
}

export type Table<State extends string, Event extends string, Action extends string> = Readonly<
  Record<State, Readonly<Partial<Record<Event, Step<State, Action>>>>>
>
