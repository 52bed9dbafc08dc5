/**
 * The platform of `tools-rig.ts` with an agent that may propose, and people of both tenants who
 * decide.
 */
import type { ProposalView } from '../../control/agents/proposals/proposal-store.ts'
import type { Answer, ControlOptions } from './control.ts'
import { openToolRig, type ToolRig } from './tools-rig.ts'

export interface ProposalRig extends ToolRig {
  /** The token of a key of tenant acme with `*:read` and `mcp:propose`. */
  readonly agent: string
  /**
   * Sessions: an administrator and an operator of the platform, an administrator of each tenant.
   */
  readonly people: Readonly<Record<'admin' | 'operator' | 'acme' | 'other', string>>
  propose(tool: string, given: object, token?: string): Promise<Answer>
  /** One that must succeed. */
  proposed(tool?: string, given?: object, token?: string): Promise<ProposalView>
  proposal(id: string): Promise<ProposalView>
  decide(decision: 'approve' | 'refuse', id: string, token: string, body?: object): Promise<Answer>
  stateOfNode(): string | undefined
}

/** Takes the second node of the set of acme out of service. */
export const drain = {
  state: 'inactive',
  setId: 1,
  destination: 'sip:10.0.0.2:5060;transport=udp',
}

export async function openProposalRig(options?: ControlOptions): Promise<ProposalRig> {
  const rig = await openToolRig(options)
  const tenants = { acme: 1, other: 2 }
  await rig.user('ada', 'admin')
  await rig.user('olga', 'operator')
  await rig.user('anna', 'admin', tenants.acme)
  await rig.user('otto', 'admin', tenants.other)
  const session = async (username: string) => {
    const body = { username, password: 'correct horse' }
    return (await rig.request('/auth/login', { body })).data<{ token: string }>().token
  }
  const scopes = ['*:read', 'mcp:propose']
  const agent = await rig.key({ name: 'night agent', scopes, tenant_slug: 'acme' })
  const people = {
    admin: await session('ada'),
    operator: await session('olga'),
    acme: await session('anna'),
    other: await session('otto'),
  }
  const reason = 'the node does not answer'
  const propose: ProposalRig['propose'] = (tool, given, token = agent) =>
    rig.tool('propose_change', { tool, arguments: given, reason }, token)
  const proposal = async (id: string) =>
    (await rig.request(`/api/v1/proposals/${id}`, { token: rig.root })).data<ProposalView>()
  return {
    ...rig,
    agent,
    people,
    propose,
    proposal,
    async proposed(tool = 'set_dispatcher_state', given = drain, token = agent) {
      const answer = await propose(tool, given, token)
      if (answer.status !== 200) throw new Error(answer.text)
      const { proposal_id } = answer.data<ProposalView>()
      return proposal(proposal_id)
    },
    decide: (decision, id, token, body = decision === 'approve' ? { revision: 1 } : {}) =>
      rig.request(`/api/v1/proposals/${id}/${decision}`, { token, body }),
    stateOfNode: () =>
      rig.engine.dispatcher
        .status(1)[0]
        ?.nodes.find((node) => node.destination === drain.destination)?.state,
  }
}
