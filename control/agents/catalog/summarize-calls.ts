/** What calls of a period come to, by customer, destination, node …: the first look at an incident. */
import { requestScope } from '../../auth/tenants.ts'
import { askSummary, summaryInput } from '../../reports/sums/summary-input.ts'
import { summary } from '../../reports/sums/summary.ts'
import { defineTool } from '../tool.ts'

export const summarizeCalls = defineTool({
  name: 'summarize_calls',
  title: 'Summarize calls',
  description:
    'Counts the calls of a period by group: answered, denied, failed, ASR, exact cost, and call uuids as evidence. ' +
    'Use it before search_cdrs. callee_prefix groups by the first 4 digits of the called number. Grouping with one filter, ' +
    'or with customer, covers months; other filters read records, newest first, for a second: complete says so.',
  effect: 'reads',
  scopes: ['cdrs:read'],
  input: summaryInput,
  output: summary,
  run: ({ start: from, end: before, ...asked }, use) =>
    askSummary({ ...asked, from, before }, use, requestScope(use.principal, use.now)),
})
