/**
 * Our registration with a carrier (RFC 3261 §10.2) as a table. A binding that the carrier still
 * holds is not lost because one refresh was not answered: only when it lapses.
 */
export type RegistrationState =
  'unregistered' | 'registering' | 'registered' | 'refreshing' | 'failed'

export type RegistrationEvent =
  /** To be registered from now on. */
  | 'begin'
  /** The waiting time is over. */
  | 'due'
  | 'accepted'
  /** 423: longer is possible. */
  | 'tooBrief'
  /** Any other final answer. */
  | 'refused'
  /** No answer, or it could not be sent. */
  | 'silent'
  /** Our own SIP server is away. */
  | 'unsent'
  /** The binding that the carrier granted has expired. */
  | 'lapsed'
  /** Not to be registered any more. */
  | 'end'

export type RegistrationAction =
  | 'send'
  | 'lengthen'
  | 'tryNextRegistrar'
  | 'awaitRefresh'
  | 'awaitRetry'
  /** Asks the carrier to forget the binding. */
  | 'remove'

interface Transition {
  readonly to: RegistrationState
  readonly do: readonly RegistrationAction[]
}

/** An event that is missing in a state changes nothing there. */
export const registrationStates: Readonly<
  Record<RegistrationState, Partial<Readonly<Record<RegistrationEvent, Transition>>>>
> = {
  unregistered: { begin: { to: 'registering', do: ['send'] } },
  registering: {
    accepted: { to: 'registered', do: ['awaitRefresh'] },
    tooBrief: { to: 'registering', do: ['lengthen', 'send'] },
    refused: { to: 'failed', do: ['awaitRetry'] },
    silent: { to: 'failed', do: ['tryNextRegistrar', 'awaitRetry'] },
    unsent: { to: 'registering', do: ['awaitRetry'] },
    due: { to: 'registering', do: ['send'] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  registered: {
    due: { to: 'refreshing', do: ['send'] },
    lapsed: { to: 'failed', do: [] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  refreshing: {
    accepted: { to: 'registered', do: ['awaitRefresh'] },
    tooBrief: { to: 'refreshing', do: ['lengthen', 'send'] },
    refused: { to: 'failed', do: ['awaitRetry'] },
    silent: { to: 'registered', do: ['tryNextRegistrar', 'awaitRetry'] },
    unsent: { to: 'registered', do: ['awaitRetry'] },
    lapsed: { to: 'registering', do: [] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  failed: {
    due: { to: 'registering', do: ['send'] },
    end: { to: 'unregistered', do: [] },
  },
}
