import type { Principal } from '../auth/principal.ts'

/** A person who decides, or a program that is no agent. */
export interface Decider {
  readonly principal: Principal
  /** `link`: by the link of a webhook, with the rights of the user who answers for it. */
  readonly via: 'api' | 'link'
  readonly address: string
  readonly correlationId: string
}
