import { expect, test } from 'vitest'
import {
  decisionHeaders,
  decisionPage,
} from '../../../../control/agents/proposals/decision-routes.ts'
import type { ProposalView } from '../../../../control/agents/proposals/proposal-store.ts'

const proposal: ProposalView = {
  proposal_id: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
  at: '2026-01-01T00:00:00.000Z',
  tenant_slug: 'acme',
  proposed_by: 'key:1',
  proposed_by_name: 'night agent',
  tool: 'suspend_api_key',
  arguments: { key: 'dialler' },
  reason: 'it looks leaked',
  effect: 'Suspends the key "dialler".',
  affected: { requests_last_hour: 12 },
  target: 'api_key 5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
  previous_state: null,
  undo: 'undo_change',
  risk: 'medium',
  revision: 3,
  state: 'open',
  expires_at: '2026-01-02T00:00:00.000Z',
  decided_at: null,
  decided_by: null,
  decided_by_name: null,
  decided_via: null,
  note: null,
  change_id: null,
  failure: null,
}

test('the page shows effect, risk, undo, who is affected and the quoted reason, and carries the revision', () => {
  const page = decisionPage(proposal)
  expect(page).toContain('Suspends the key &#34;dialler&#34;.')
  expect(page).toContain('medium: it can be undone, and calls or requests are affected now.')
  expect(page).toContain('requests last hour: 12')
  expect(page).toContain('<q>it looks leaked</q>')
  expect(page).toContain('name="revision" value="3"')
  expect(page).toContain('night agent')
  expect(page).toContain('acme')
})

const attack = `</q><script>alert(1)</script><img src=x onerror="alert(1)">'&lt;\u202Eevil\u0000`
const fields = [
  'reason',
  'effect',
  'tool',
  'proposed_by_name',
  'tenant_slug',
  'note',
  'failure',
  'decided_by',
  'change_id',
  'undo',
  'expires_at',
] as const

test.each(fields)('text in %s is text, and nothing of it is invisible', (field) => {
  const page = decisionPage({ ...proposal, [field]: attack })
  const tags = (html: string) => html.match(/<[/!]?[a-z]+/gi)
  expect(tags(page)).toEqual(tags(decisionPage(proposal)))
  expect(page).not.toContain('\u202e')
  expect(page).not.toContain('\u0000')
})

test('names and texts of arguments and affected are text as well, and so is the notice', () => {
  const plain = decisionPage(proposal, 'Done.')
  const page = decisionPage(
    { ...proposal, arguments: { [attack]: attack }, affected: { [attack]: 1 } },
    attack,
  )
  const tags = (html: string) => html.match(/<[/!]?[a-z]+/gi)
  expect(tags(page)).toEqual(tags(plain))
})

test('no script runs on the page, nothing is loaded, framed or told to other pages', () => {
  const policy = decisionHeaders['Content-Security-Policy']
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe|script-src/)
  expect(decisionPage(proposal)).not.toContain('<script')
  expect(decisionHeaders).toMatchObject({
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-store',
    'X-Frame-Options': 'DENY',
  })
})
