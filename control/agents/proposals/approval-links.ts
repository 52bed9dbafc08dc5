/**
 * Links with which a person decides on a proposal. A link is made when its webhook is sent, and
 * stored nowhere: it is signed with a key that follows from the secret of sessions. It acts for the
 * user who has switched it on at the endpoint, and is worth nothing once that user, the endpoint or
 * the proposal is gone.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Store } from '../../../schema/storage/store.ts'
import { first } from '../../../schema/sql/query.ts'
import type { UserPrincipal } from '../../auth/principal.ts'
import { rightsOf } from '../../auth/sessions.ts'
import type { UserRow, UserStore } from '../../auth/user-store.ts'
import type { EndpointRow } from '../../webhooks/endpoint-store.ts'

export interface ApprovalLinksDeps {
  readonly store: Store
  readonly users: Pick<UserStore, 'byId'>
  /** Where people reach this API; undefined: there are no links. */
  readonly publicUrl: string | undefined
  readonly readSecret: () => Promise<string>
}

export interface LinkedProposal {
  readonly proposalId: string
  /** Null: the endpoint has the events of all tenants. */
  readonly tenantId: number | null
  readonly endpointId: number
  readonly principal: UserPrincipal
}

/** The start of the body of the only event that has a link. */
const withLink = '{"type":"proposal.created",'
const linkForm = /^([\da-f-]{36})\.(\d{1,15})\.([\w-]{43})$/

export class ApprovalLinks {
  readonly #deps: ApprovalLinksDeps
  #key: Buffer | undefined

  constructor(deps: ApprovalLinksDeps) {
    this.#deps = deps
  }

  /** The body as it is sent to this endpoint: the same at each attempt. */
  async complete(
    { id, approver_id: approverId }: Pick<EndpointRow, 'id' | 'approver_id'>,
    body: string,
  ): Promise<string> {
    const { publicUrl } = this.#deps
    if (publicUrl === undefined || approverId === null || !body.startsWith(withLink)) return body
    const event = JSON.parse(body) as { readonly data: { readonly proposal_id: string } }
    const proposalId = event.data.proposal_id
    const signature = await this.#sign(proposalId, id, approverId)
    const link = `${proposalId}.${id}.${signature.toString('base64url')}`
    const approve_url = `${publicUrl}/decide?link=${link}`
    return JSON.stringify({ ...event, data: { ...event.data, approve_url } })
  }

  /** Undefined: it is forged, or its user or endpoint is not there any more. */
  async open(link: string): Promise<LinkedProposal | undefined> {
    const [, proposalId = '', endpoint = '', given = ''] = linkForm.exec(link) ?? []
    if (proposalId === '') return undefined
    const { store, users } = this.#deps
    const endpointId = Number(endpoint)
    const query = store.db
      .selectFrom('webhook_endpoint')
      .select(['tenant_id', 'approver_id'])
      .where('id', '=', endpointId)
      .where('is_active', '=', 1)
      .where('removed_at', 'is', null)
    const row = await first(store, query)
    if (row === undefined || row.approver_id === null) return undefined
    const expected = await this.#sign(proposalId, endpointId, row.approver_id)
    const signature = Buffer.from(given, 'base64url')
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected))
      return undefined
    const user = await users.byId(row.approver_id)
    if (user === undefined || user.is_active === 0) return undefined
    const principal = principalOf(user)
    return { proposalId, tenantId: row.tenant_id, endpointId, principal }
  }

  async #sign(proposalId: string, endpointId: number, approverId: number): Promise<Buffer> {
    this.#key ??= createHmac('sha256', await this.#deps.readSecret())
      .update('approval links')
      .digest()
    return createHmac('sha256', this.#key)
      .update(`${proposalId} ${endpointId} ${approverId}`)
      .digest()
  }
}

/** The rights of the user now, for one decision: there is no session. */
const principalOf = (user: UserRow): UserPrincipal => ({
  ...rightsOf(user),
  jti: '',
  expiresAt: 0,
  latestExpiresAt: 0,
  passwordMark: '',
})
