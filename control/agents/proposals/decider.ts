import type { Principal } from '../../auth/principal.ts'
import type { AskedNodes } from '../../nodes/other-nodes.ts'

/** A person who decides, or a program that is no agent. */
export interface Decider {
  readonly principal: Principal
  /** `link`: by the link of a webhook, with the rights of the user who answers for it. */
  readonly via: 'api' | 'link'
  readonly address: string
  readonly correlationId: string
  /** The other nodes of the installation; undefined: there is none to ask. */
  readonly elsewhere: AskedNodes | undefined
}
