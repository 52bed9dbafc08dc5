/** `/decide`: the link of a webhook. GET shows, as programs that look into mail do; only POST decides. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { auditedActor, auditEntry, type AuditLog, digestOf } from '../../changes/audit.ts'
import { openToAll, admitScope } from '../../auth/requires.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import { ApiError, notFound } from '../../http/api-error.ts'
import { readBody } from '../../http/body.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { validate } from '../../http/validate.ts'
import type { ApprovalLinks, LinkedProposal } from './approval-links.ts'
import { decisionHeaders, decisionPage } from './decision-page.ts'
import type { ProposalView } from './proposal-view.ts'
import type { Proposals } from './proposals.ts'

export interface DecisionRoutesDeps {
  readonly proposals: Proposals
  readonly links: ApprovalLinks
  readonly audit: Pick<AuditLog, 'record'>
  readonly now: () => number
  readonly others: OtherNodes | undefined
}

const linkQuery = z.strictObject({ link: z.string().max(200) })

const decisionBody = z.object({
  revision: z
    .string()
    .regex(/^[1-9]\d{0,8}$/)
    .transform(Number),
  decision: z.enum(['approve', 'refuse']),
})

type Decision = z.output<typeof decisionBody>

export function decisionRoutes(deps: DecisionRoutesDeps) {
  const { proposals, links } = deps
  const opened = async (link: string) => {
    const linked = await links.open(link)
    const proposal = linked && (await proposals.find(linked.proposalId, linked.principal.tenantId))
    if (linked === undefined || proposal === undefined) throw notFound('Link')
    return { linked, proposal }
  }
  const page = (c: Context<ControlEnv>, proposal: ProposalView, notice?: string) =>
    c.html(decisionPage(proposal, notice), 200, decisionHeaders)

  return new Hono<ControlEnv>()
    .get('/decide', openToAll(), validate('query', linkQuery), async (c) => {
      const { proposal } = await opened(c.req.valid('query').link)
      return page(c, proposal)
    })

    .post('/decide', openToAll(), validate('query', linkQuery), async (c) => {
      const { linked, proposal } = await opened(c.req.valid('query').link)
      const decision = await decisionIn(c)
      const notice = await decide(c, deps, linked, decision)
      const after = await proposals.find(linked.proposalId, linked.principal.tenantId)
      return page(c, after ?? proposal, notice)
    })
}

async function decisionIn(c: Context<ControlEnv>): Promise<Decision> {
  const form = new URLSearchParams((await readBody(c)).toString('utf8'))
  const parsed = decisionBody.safeParse(Object.fromEntries(form))
  if (parsed.success) return parsed.data
  throw new ApiError(400, 'validation_failed', 'The form is not that of the page')
}

/** Resolves with what the person is told. The audit entry names the user who answers for the link. */
async function decide(
  c: Context<ControlEnv>,
  { proposals, audit, now, others }: DecisionRoutesDeps,
  { proposalId, endpointId, principal }: LinkedProposal,
  { revision, decision }: Decision,
): Promise<string> {
  const { clientAddress: address, correlationId } = c.var
  c.set('isAudited', true)
  const elsewhere = others?.of(c)
  const by = { principal, via: 'link', address, correlationId, elsewhere } as const
  const note = null
  const record = (after: ProposalView | undefined, error: ApiError | undefined) =>
    audit.record(
      auditEntry({
        at: now(),
        by: auditedActor(principal),
        address,
        action: `POST /decide ${decision}`,
        target: `/api/v1/proposals/${proposalId} by the link of webhook ${endpointId}`,
        status: error?.status ?? 200,
        code: error?.code,
        digests: { before: null, after: digestOf(after) },
        correlationId,
        changeId: after?.change_id,
        reason: after?.reason,
      }),
    )
  try {
    admitScope(principal, 'proposals:write')
    const after =
      decision === 'refuse'
        ? await proposals.refuse(proposalId, note, by)
        : await proposals.approve(proposalId, { revision, note }, by)
    await record(after, undefined)
    return decision === 'refuse' ? 'Refused. Nothing changed.' : 'Approved. The change is made.'
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    await record(undefined, error)
    return `${error.message}.`
  }
}
