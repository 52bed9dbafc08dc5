import { z } from 'zod'
import { data, list, type Operations, text } from '../http/openapi/operation.ts'
import { exampleTime, moment } from '../http/view-fields.ts'

const tag = 'Proposals'

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
        'What it is about, by its id: `customer 7`. It is approved for this only. Null: proposed to an earlier version.',
      ),
    affected: z.record(z.string(), z.number()).describe('Who is affected, when it was last read.'),
    previous_state: z.unknown().describe('The state now, to which it can be undone.'),
    undo: z.string().describe('`undo_change`, or that it cannot be undone.'),
    risk: z
      .enum(['low', 'medium', 'high'])
      .describe(
        '`high`: it cannot be undone, or more than 100 calls or requests are affected; `medium`: some are; `low`: none is.',
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

const path = '/api/v1/proposals'

export const proposalOperations: Operations = {
  [`GET ${path}`]: {
    id: 'listProposals',
    tag,
    summary: 'List proposals, newest first',
    answer: list(proposal, example),
  },
  [`GET ${path}/:uuid`]: {
    id: 'getProposal',
    tag,
    summary: 'Get a proposal',
    answer: data(proposal, example),
  },
  [`POST ${path}/:uuid/approve`]: {
    id: 'approveProposal',
    tag,
    summary:
      'Make the proposed change. Requires the scopes of its tool, and a person or a key without scopes of mcp.',
    body: { revision: 1, note: 'seen with the customer' },
    answer: data(proposal, approved),
    refusals: [409, 422],
  },
  [`POST ${path}/:uuid/refuse`]: {
    id: 'refuseProposal',
    tag,
    summary: 'Refuse a proposal. Nothing changes.',
    body: { note: 'it is our own test' },
    answer: data(proposal, { ...example, state: 'refused', decided_by: 'user:ada' }),
    refusals: [409],
  },
  'GET /decide': {
    id: 'showDecision',
    tag,
    summary: 'The page behind `approve_url` of a webhook',
    answer: text('text/html', '<!doctype html>…'),
    refusals: [404, 503],
  },
  'POST /decide': {
    id: 'decideByLink',
    tag,
    summary: 'What the buttons of that page send',
    body: 'revision=1&decision=approve',
    bodyType: 'application/x-www-form-urlencoded',
    answer: text('text/html', '<!doctype html>…'),
    refusals: [404, 503],
  },
}
