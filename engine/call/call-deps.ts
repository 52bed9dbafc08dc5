/** The parts of the engine that call control works with, and the live calls. */
import type { Charging } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { OwnedNumbers } from '../../schema/contracts/owned-numbers.ts'
import type { StirPort } from '../../schema/contracts/stir.ts'
import type { Dispatcher } from '../dispatcher/dispatcher.ts'
import type { Routing } from '../routing/routing.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { ApplicationRuns } from './application/application-runs.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import type { CallerIdentities } from './identity/caller-identities.ts'
import type { IdentifyDeps, sourceOf } from './inbound/admission.ts'
import type { RouteDeps } from './inbound/route.ts'
import type { CallDeadlines } from './deadlines.ts'
import type { CallHooks } from './hooks/call-hooks.ts'
import type { Legs } from './legs.ts'
import type { ListeningPort } from './monitoring/listening-legs.ts'
import type { CallerVerifier } from './stir/caller-verifier.ts'
import type { TransferInstances } from './transfer/other-instances.ts'
import type { UserAgent } from './user-agent/user-agent.ts'

/** The parts of the engine that call control is built on. */
export interface CallPorts extends RouteDeps {
  readonly calls: ActiveCalls
  readonly charging: Charging
  readonly client: UserAgent
  readonly deadlines: CallDeadlines
  /** Absent: this instance is the only one. */
  readonly otherInstances?: TransferInstances | undefined
  /** Which number a call shows. Absent: no rules say anything. */
  readonly identities?: Pick<CallerIdentities, 'decide'> | undefined
  /** Absent: the operator has no drachtio-srf application. */
  readonly applications?: ApplicationRuns | undefined
  /** Signs and verifies calls; absent: there is neither a key nor an authority. */
  readonly stir?: StirPort | undefined
  /** Owners of numbers; absent: nobody owns one. */
  readonly ownedNumbers?: OwnedNumbers | undefined
  /** Undefined: there are no media relays. */
  readonly listening?: ListeningPort | undefined
  readonly routing: RouteDeps['routing'] &
    IdentifyDeps['routing'] &
    Pick<
      Routing,
      | ('admitCarrierCall' | 'admitAgentCall' | 'boughtPrice' | 'limitOf')
      | ('redirected' | 'noteAttempt' | 'noteTalk')
    >
  readonly dispatcher: RouteDeps['dispatcher'] & Pick<Dispatcher, 'nodeCalled'>
  readonly registrar: RouteDeps['registrar'] & IdentifyDeps['registrar']
  /**
   * A request is refused because its source is unknown. True: a refused call gets a record, as a
   * sample. `domain`: the domain that the request names, if no tenant has it.
   */
  readonly onUnknownSource: (source: ReturnType<typeof sourceOf>, domain?: string) => boolean
  readonly newUuid: () => string
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}

/** The same, and the live calls that call control runs on them. */
export interface CallDeps extends CallPorts {
  /** The operator's own code; absent: there is none. */
  readonly hooks?: CallHooks | undefined
  readonly verifier: CallerVerifier
  /** Lets an event happen to the calls. */
  readonly dispatch: (event: MachineEvent) => void
  /** Watches the INVITE of a call that has begun: a CANCEL reaches its leg from now on. */
  readonly receive: Legs['receive']
}
