/** What call control is made of. */
import type { Charging } from '../../schema/contracts/charging.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { Routing } from '../routing/routing.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { MachineEvent } from './call-machine/protocol.ts'
import type { IdentifyDeps } from './inbound/admission.ts'
import type { RouteDeps } from './inbound/route.ts'
import type { Deadlines } from './deadlines.ts'
import type { Listening } from './monitoring/listening-legs.ts'
import type { OtherNodes } from './transfer/other-nodes.ts'
import type { UserAgent } from './user-agent/user-agent.ts'

export interface CallDeps extends RouteDeps {
  readonly calls: ActiveCalls
  readonly charging: Charging
  readonly client: UserAgent
  readonly deadlines: Deadlines
  /** Absent: this node is the only one. */
  readonly otherNodes?: OtherNodes | undefined
  /** Undefined: there are no media relays. */
  readonly listening?: Listening | undefined
  readonly routing: RouteDeps['routing'] &
    IdentifyDeps['routing'] &
    Pick<Routing, 'admitCarrierCall' | 'admitAgentCall' | 'limitOf'>
  readonly registrar: RouteDeps['registrar'] & IdentifyDeps['registrar']
  /** Lets an event happen to the calls. */
  readonly dispatch: (event: MachineEvent) => void
  readonly newUuid: () => string
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}
