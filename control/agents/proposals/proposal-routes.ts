/** `/proposals`: changes that agents propose and people decide on. */
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import { repeatable } from '../../auth/idempotency.ts'
import { notFound } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok, offsetOf, pageMeta, pageQuery } from '../../http/envelope.ts'
import { text } from '../../http/fields.ts'
import { validate, describeRoute } from '../../http/validate.ts'
import type { WithOthers } from '../../instances/other-instances.ts'
import type { Decider, Proposals } from './proposals.ts'
import { data, list } from '../../http/operation.ts'
import { exampleTime, moment } from '../../http/view-fields.ts'

const proposal = z
  .strictObject({
    proposal_id: z.string(),
    at: moment,
    tenant_slug: z.string().nullable().describe('Null: a proposal of the platform.'),
    proposed_by: z.string(),
    proposed_by_name: z.string().nullable(),
    tool: z.string(),
    arguments: z.looseObject({}),
    reason: z.string().describe('In the words of the agent: data, never instructions.'),
    effect: z.string(),
    target: z
      .string()
      .nullable()
      .describe(
        'What it is about, by its id: `customer 7`. It is approved for this only. Null: ' +
          'proposed to an earlier version.',
      ),
    affected: z.record(z.string(), z.number()).describe('Who is affected, when it was last read.'),
    previous_state: z.unknown().describe('The state now, to which it can be undone.'),
    undo: z.string().describe('`undo_change`, or that it cannot be undone.'),
    risk: z
      .enum(['low', 'medium', 'high'])
      .describe(
        '`high`: it cannot be undone, or more than 100 calls or requests are affected; ' +
          '`medium`: some are; `low`: none is.',
      ),
    revision: z.int().describe('One more each time when what it shows has changed.'),
    state: z.enum(['open', 'approved', 'refused', 'expired', 'failed']),
    expires_at: moment,
    decided_at: moment.nullable(),
    decided_by: z.string().nullable(),
    decided_by_name: z.string().nullable(),
    decided_via: z.enum(['api', 'link']).nullable(),
    note: z.string().nullable(),
    change_id: z.string().nullable().describe('Null: nothing was changed, or not yet.'),
    failure: z.string().nullable().describe('Why the approved change was not made.'),
  })
  .meta({ id: 'Proposal' })

const example = {
  proposal_id: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  at: exampleTime,
  tenant_slug: 'acme',
  proposed_by: 'key:5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
  proposed_by_name: 'night agent',
  tool: 'suspend_api_key',
  arguments: { key: 'dialler' },
  reason: 'It looks leaked',
  effect: 'Suspends the key "dialler".',
  affected: { requests_per_hour: 0 },
  target: 'api_key 5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
  previous_state: { suspended_at: null },
  undo: 'undo_change',
  risk: 'low',
  revision: 1,
  state: 'open',
  expires_at: exampleTime,
  decided_at: null,
  decided_by: null,
  decided_by_name: null,
  decided_via: null,
  note: null,
  change_id: null,
  failure: null,
}

const approved = {
  ...example,
  state: 'approved',
  decided_at: exampleTime,
  decided_by: 'user:ada',
  decided_via: 'api',
  change_id: '3f1c5a52-8c0f-4a86-9f53-2d3f9d3f7c10',
}

const PATH = '/proposals'

interface ProposalRoutesDeps extends WithOthers {
  readonly proposals: Proposals
}

export function proposalRoutes(deps: ProposalRoutesDeps) {
  return new Hono<ControlEnv>()
    .route('/', listProposalsRoute(deps))
    .route('/', getProposalRoute(deps))
    .route('/', approveProposalRoute(deps))
    .route('/', refuseProposalRoute(deps))
}

const listProposalsRoute = ({ proposals }: ProposalRoutesDeps) =>
  new Hono<ControlEnv>().get(
    PATH,
    describeRoute({
      id: 'listProposals',
      tag: 'Proposals',
      summary: 'List proposals, newest first',
      answer: list(proposal, example),
    }),
    requires('proposals:read'),
    validate('query', proposalQuery),
    async (c) => {
      const { state, ...page } = c.req.valid('query')
      const { tenantId } = c.var.principal
      const slice = { limit: page.limit, offset: offsetOf(page) }
      const found = await proposals.list({ tenantId, state }, slice)
      return ok(c, found.proposals, pageMeta(page, found.total))
    },
  )

const getProposalRoute = ({ proposals }: ProposalRoutesDeps) =>
  new Hono<ControlEnv>().get(
    `${PATH}/:uuid`,
    describeRoute({
      id: 'getProposal',
      tag: 'Proposals',
      summary: 'Get a proposal',
      answer: data(proposal, example),
    }),
    requires('proposals:read'),
    validate('param', proposalPath),
    async (c) => {
      const found = await proposals.find(c.req.valid('param').uuid, c.var.principal.tenantId)
      if (found === undefined) throw notFound('Proposal')
      return ok(c, found)
    },
  )

const approveProposalRoute = (deps: ProposalRoutesDeps) =>
  new Hono<ControlEnv>().post(
    `${PATH}/:uuid/approve`,
    describeRoute({
      id: 'approveProposal',
      tag: 'Proposals',
      summary:
        'Make the proposed change. Requires the scopes of its tool, and a person or a ' +
        'key without scopes of mcp.',
      body: { revision: 1, note: 'seen with the customer' },
      answer: data(proposal, approved),
      refusals: [409, 422],
    }),
    requires('proposals:write'),
    validate('param', proposalPath),
    validate('json', approvalBody),
    repeatable(),
    (c) => {
      const { uuid } = c.req.valid('param')
      const { revision, note = null } = c.req.valid('json')
      return decided(c, deps, uuid, (by) => deps.proposals.approve(uuid, { revision, note }, by))
    },
  )

const refuseProposalRoute = (deps: ProposalRoutesDeps) =>
  new Hono<ControlEnv>().post(
    `${PATH}/:uuid/refuse`,
    describeRoute({
      id: 'refuseProposal',
      tag: 'Proposals',
      summary: 'Refuse a proposal. Nothing changes.',
      body: { note: 'it is our own test' },
      answer: data(proposal, { ...example, state: 'refused', decided_by: 'user:ada' }),
      refusals: [409],
    }),
    requires('proposals:write'),
    validate('param', proposalPath),
    validate('json', refusalBody),
    repeatable(),
    (c) => {
      const { uuid } = c.req.valid('param')
      const { note = null } = c.req.valid('json')
      return decided(c, deps, uuid, (by) => deps.proposals.refuse(uuid, note, by))
    },
  )

async function decided(
  c: Context<ControlEnv>,
  { proposals, others }: ProposalRoutesDeps,
  uuid: string,
  decide: (decider: Decider) => ReturnType<Proposals['refuse']>,
): Promise<Response> {
  const { principal, clientAddress: address, correlationId } = c.var
  const before = (await proposals.find(uuid, principal.tenantId)) ?? null
  const peers = others?.of(c)
  const after = await decide({ principal, via: 'api', address, correlationId, peers })
  c.set('change', { before, after })
  return ok(c, after)
}

const proposalQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['open', 'approved', 'refused', 'expired', 'failed']).optional(),
})

/** Any text: an invalid uuid is not found, like a uuid of another tenant. */
const proposalPath = z.strictObject({ uuid: z.string().max(100) })

const note = text(500).min(1).optional().describe('What the agent and others read beside it.')

const approvalBody = z.strictObject({
  revision: z
    .int()
    .min(1)
    .describe('`revision` of the proposal as it was read: only what it showed is approved.'),
  note,
})

const refusalBody = z.strictObject({ note })
