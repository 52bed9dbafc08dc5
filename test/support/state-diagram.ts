/** The table of a state machine as a Mermaid state diagram: what happens, and where it leads. */
import type { TransactionTable } from '../../engine/sip-server/transaction/machine.ts'

export function stateDiagram(
  table: TransactionTable<string, string, string>,
  starts: readonly string[],
  ends: readonly string[] = ['terminated'],
): string {
  const lines = [
    'stateDiagram-v2',
    '  direction LR',
    ...starts.map((start) => `  [*] --> ${start}`),
  ]
  for (const [state, steps] of Object.entries(table)) {
    const byTarget = new Map<string, string[]>()
    for (const [event, step] of Object.entries(steps)) {
      if (!step) continue
      const actions = step.do.length === 0 ? '' : ` / ${step.do.join(', ')}`
      byTarget.set(step.to, [...(byTarget.get(step.to) ?? []), `${event}${actions}`])
    }
    for (const [to, events] of byTarget) lines.push(`  ${state} --> ${to}: ${events.join('<br>')}`)
  }
  return [...lines, ...ends.map((end) => `  ${end} --> [*]`)].join('\n')
}
