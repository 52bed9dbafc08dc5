/** The page behind the link of a webhook: one proposal, and two buttons. No script, nothing from elsewhere. */
import { createHash } from 'node:crypto'
import { cleanText } from '../../http/clean-text.ts'
import type { ProposalView } from './proposal-view.ts'

const style = `body{max-width:42rem;margin:2rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif;color:#111;background:#fff}
dt{margin-top:.75rem;font-weight:600}dd{margin:0;overflow-wrap:anywhere}pre{white-space:pre-wrap;overflow-wrap:anywhere}
button{margin-right:1rem;padding:.5rem 1.25rem;font:inherit}.notice{padding:.5rem 1rem;border:1px solid #b45309}`

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

/** `notice`: what became of a decision. */
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
      `${escaped(proposal.tool)} <pre>${escaped(JSON.stringify(proposal.arguments, null, 2))}</pre>`,
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

/** It goes back to the address of the page, which has the link. */
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
