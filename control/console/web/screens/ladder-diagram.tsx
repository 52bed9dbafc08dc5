/** The ladder diagram of a call: each message to read, and the decisions between them in words. */
import type { CallTrace } from '../api/views.ts'
import { clockText } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import { visibleLines, visibleText } from '../parts/visible-text.ts'
import { decisionText } from './decision-words.ts'
import { ladderOf, type Party, type Step } from './ladder.ts'

/** A SIP message over UDP is not longer. */
const MAX_MESSAGE = 65_536

export function Ladder({ trace }: { trace: CallTrace }) {
  const { parties, steps } = ladderOf(trace)
  return (
    <div class="ladder wide" tabIndex={0} role="group" aria-label="Messages and decisions">
      <div class="parties" style={columnsFor(parties.length)}>
        <span />
        {parties.map(({ title, name }) => (
          <span key={title}>
            {title}
            {name !== null && (
              <small>
                <Text value={name} max={40} />
              </small>
            )}
          </span>
        ))}
      </div>
      <ol>
        {steps.map((step, index) => (
          <li key={index}>
            {step.kind === 'decision' ? (
              <p class="decision">
                <time>{clockText(step.decision.at)}</time>{' '}
                {visibleText(decisionText(step.decision), 800)}
              </p>
            ) : (
              <Message step={step} parties={parties} />
            )}
          </li>
        ))}
      </ol>
    </div>
  )
}

const columnsFor = (count: number) => ({
  // Two for each party: an arrow goes from the middle of one to the middle of another.
  gridTemplateColumns: `6rem repeat(${count * 2}, minmax(5rem, 1fr))`,
})

interface MessageProps {
  readonly step: Extract<Step, { kind: 'message' }>
  readonly parties: readonly Party[]
}

function Message({ step: { message, from, to }, parties }: MessageProps) {
  const [left, right] = [Math.min(from, to), Math.max(from, to)]
  return (
    <details>
      <summary style={columnsFor(parties.length)}>
        <time>{clockText(message.at)}</time>
        <span
          class={`arrow ${from < to ? 'right' : 'left'}`}
          style={{ gridColumn: `${left * 2 + 3} / ${right * 2 + 3}` }}
        >
          <span class="hidden">
            {parties[from]?.title} to {parties[to]?.title}:{' '}
          </span>
          {visibleText(message.summary, 80)}
        </span>
      </summary>
      <p>
        <small>
          {message.direction} by {visibleText(message.transport)}, {visibleText(message.address)}
        </small>
      </p>
      <pre tabIndex={0}>{visibleLines(message.text, MAX_MESSAGE)}</pre>
    </details>
  )
}
