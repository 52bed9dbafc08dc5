/** A state machine as a table, in the manner of RFC 3261's figures. What has no entry changes nothing. */
export type Table<State extends string, Event extends string, Action extends string> = {
  readonly [state in State]: {
    readonly [event in Event]?: { readonly to: State; readonly do: readonly Action[] }
  }
}
