/** The tools that make changes, as proposals use them. */
import type { Principal } from '../../auth/principal.ts'
import type { Scope } from '../../auth/scopes.ts'
import type { AskedNodes } from '../../nodes/other-nodes.ts'
import type { Decider } from './decider.ts'
import type { ChangeEffect } from '../../changes/change.ts'
import type { PlannedChange } from './planned.ts'

/** On which proposal a change is made, and on whose word. */
export interface Approval {
  /** Throws when the change, as it is about to be made, is not the one that was approved. */
  readonly accept: (plan: ChangeEffect) => void
  readonly proposalId: string
  readonly reason: string
  readonly decider: Decider
}

type Arguments = Readonly<Record<string, unknown>>

export interface Proposable {
  /** All that the tool requires. */
  readonly scopes: readonly Scope[]
  /**
   * Changes nothing. Throws an `ApiError` where the tool would refuse.
   *
   * @param elsewhere the other nodes, which may have what the change is about; undefined: there is none to ask.
   */
  readonly plan: (
    given: Arguments,
    principal: Principal,
    elsewhere: AskedNodes | undefined,
  ) => Promise<PlannedChange>
  /** Resolves with the `change_id`; null: there was nothing to change. */
  readonly make: (given: Arguments, approval: Approval) => Promise<string | null>
}

export interface ProposableTools {
  /** Undefined: there is no such tool, or it changes nothing. */
  find(name: string): Proposable | undefined
  names(): readonly string[]
}
