/**
 * `/decide`: the link of a webhook. GET only shows, because mail programs follow links; POST
 * decides.
 */
import { createHash } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { admitScope, openToAll } from '../../auth/requires.ts'
import { auditedActor, auditEntry, type AuditLog, digestOf } from '../../changes/audit.ts'
import { ApiError, notFound } from '../../http/api-error.ts'
import { readBody } from '../../http/body.ts'
import { cleanText } from '../../http/clean-text.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { validate, describeRoute } from '../../http/validate.ts'
import type { WithOthers } from '../../instances/other-instances.ts'
import type { ApprovalLinks, LinkedProposal } from './approval-links.ts'
import type { ProposalView } from './proposal-store.ts'
import type { Proposals } from './proposals.ts'
import { text } from '../../http/operation.ts'

interface DecisionDeps extends WithOthers {
  readonly links: ApprovalLinks
  readonly audit: Pick<AuditLog, 'record'>
  readonly now: () => number
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

export function decisionRoutes(proposals: Proposals, deps: DecisionDeps) {
  const { links } = deps
  const opened = async (link: string) => {
    const linked = await links.open(link)
    const proposal = linked && (await proposals.find(linked.proposalId, linked.principal.tenantId))
    if (linked === undefined || proposal === undefined) throw notFound('Link')
    return { linked, proposal }
  }
  const page = (c: Context<ControlEnv>, proposal: ProposalView, notice?: string) =>
    c.html(decisionPage(proposal, notice), 200, decisionHeaders)

  return new Hono<ControlEnv>()
    .get(
      '/decide',
      describeRoute({
        id: 'showDecision',
        tag: 'Proposals',
        summary: 'The page behind `approve_url` of a webhook',
        answer: text('text/html', '<!doctype html>…'),
        refusals: [404, 503],
      }),
      openToAll(),
      validate('query', linkQuery),
      async (c) => {
        const { proposal } = await opened(c.req.valid('query').link)
        return page(c, proposal)
      },
    )

    .post(
      '/decide',
      describeRoute({
        id: 'decideByLink',
        tag: 'Proposals',
        summary: 'What the buttons of that page send',
        body: 'revision=1&decision=approve',
        bodyType: 'application/x-www-form-urlencoded',
        answer: text('text/html', '<!doctype html>…'),
        refusals: [404, 503],
      }),
      openToAll(),
      validate('query', linkQuery),
      async (c) => {
        const { linked, proposal } = await opened(c.req.valid('query').link)
        const decision = await decisionIn(c)
        const notice = await decide(c, proposals, deps, linked, decision)
        const after = await proposals.find(linked.proposalId, linked.principal.tenantId)
        return page(c, after ?? proposal, notice)
      },
    )
}

async function decisionIn(c: Context<ControlEnv>): Promise<Decision> {
  const form = new URLSearchParams((await readBody(c)).toString('utf8'))
  const parsed = decisionBody.safeParse(Object.fromEntries(form))
  if (parsed.success) return parsed.data
  throw new ApiError(400, 'validation_failed', 'The form does not come from this page')
}

/** Resolves with the notice for the person. The audit entry names the user of the link. */
async function decide(
  c: Context<ControlEnv>,
  proposals: Proposals,
  { audit, now, others }: DecisionDeps,
  { proposalId, endpointId, principal }: LinkedProposal,
  { revision, decision }: Decision,
): Promise<string> {
  const { clientAddress: address, correlationId } = c.var
  c.set('isAudited', true)
  const peers = others?.of(c)
  const by = { principal, via: 'link', address, correlationId, peers } as const
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

const style =
  'body{max-width:42rem;margin:2rem auto;padding:0 1rem;' +
  'font:1rem/1.5 system-ui,sans-serif;color:#111;background:#fff}\n' +
  'dt{margin-top:.75rem;font-weight:600}dd{margin:0;overflow-wrap:anywhere}pre{' +
  'white-space:pre-wrap;overflow-wrap:anywhere}\n' +
  'button{margin-right:1rem;padding:.5rem 1.25rem;font:inherit}.notice{' +
  'padding:.5rem 1rem;border:1px solid #b45309}'

export const decisionHeaders = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Frame-Options': 'DENY',
  'X-Robots-Tag': 'noindex, nofollow',
}

/** `notice`: the outcome of a decision. */
export function decisionPage(proposal: ProposalView, notice?: string): string {
  const isOpen = proposal.state === 'open'
  const by = proposal.proposed_by_name ?? proposal.proposed_by
  const facts = [
    ['Effect', escaped(proposal.effect)],
    ['On', escaped(proposal.target ?? '')],
    ['Risk', `${proposal.risk}: ${risks[proposal.risk]}`],
    ['Undo', proposal.undo === 'undo_change' ? 'It can be undone.' : 'It cannot be undone.'],
    ['Affected now', escaped(affectedText(proposal.affected))],
    [
      'Tool',
      `${escaped(proposal.tool)} ` +
        `<pre>${escaped(JSON.stringify(proposal.arguments, null, 2))}</pre>`,
    ],
    ['Reason, in the words of the agent', `<q>${escaped(proposal.reason)}</q>`],
    ['Proposed by', escaped(by)],
    ['Tenant', escaped(proposal.tenant_slug ?? 'the platform')],
    ['Expires', escaped(proposal.expires_at)],
    ['State', escaped(stateText(proposal))],
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Proposal · Tollgate</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Proposed change</h1>
${notice === undefined ? '' : `<p class="notice" role="status">${escaped(notice)}</p>\n`}<dl>
${facts.map(([name, value]) => `<dt>${name}</dt><dd>${value}</dd>`).join('\n')}
</dl>
${isOpen ? form(proposal.revision) : ''}</main>
</body>
</html>
`
}

/** Without `action`, the form is sent to the address of the page, which has the link. */
const form = (revision: number): string => `<form method="post">
<input type="hidden" name="revision" value="${revision}">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="refuse">Refuse</button>
</form>
`

const risks = {
  low: 'it can be undone, and no call or request is affected now.',
  medium: 'it can be undone, and calls or requests are affected now.',
  high: 'it cannot be undone, or many calls or requests are affected.',
} as const

const affectedText = (affected: ProposalView['affected']): string =>
  Object.entries(affected)
    .map(([name, count]) => `${name.replaceAll('_', ' ')}: ${count}`)
    .join(', ') || 'nothing is known'

const stateText = ({ state, decided_by, change_id, failure, note }: ProposalView): string =>
  [
    state,
    decided_by === null ? '' : `by ${decided_by}`,
    change_id === null ? '' : `change ${change_id}`,
    failure ?? '',
    note ?? '',
  ]
    .filter((part) => part !== '')
    .join(', ')

const MAX_TEXT = 8_192

/** Text of others: nothing invisible, and no character that HTML or a quoted attribute reads. */
const escaped = (text: string): string =>
  text
    .split('\n')
    .map((line) => cleanText(line, MAX_TEXT))
    .join('\n')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
