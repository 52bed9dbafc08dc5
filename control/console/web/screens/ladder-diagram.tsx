/** The ladder diagram of a call: each message to read, and the decisions between them in words. */
import type { CallTrace } from '../api/views.ts'
import { clockText, shortAddress } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import { visibleLines, visibleText } from '../parts/visible-text.ts'
import { decisionText } from './decision-words.ts'
import { afterText, ladderOf, shortSummary, type LadderParty, type LadderStep } from './ladder.ts'
import type { NodeName } from './names.ts'

/** A SIP message over UDP is not longer. */
const MAX_MESSAGE = 65_536

interface LadderProps {
  readonly trace: CallTrace
  /** Names of nodes by destination. */
  readonly nodes: ReadonlyMap<string, NodeName>
}

export function Ladder({ trace, nodes }: LadderProps) {
  const { parties, steps } = ladderOf(trace)
  const namesByPlace = new Map([...nodes].map(([uri, name]) => [shortAddress(uri), name]))
  const named = (name: string): string => namesByPlace.get(name)?.name ?? name
  const words = (text: string): string =>
    text.replace(/sips?:[^\s";,]+(?:;transport=\w+)?/g, (uri) => named(shortAddress(uri)))
  return (
    <div class="ladder wide" tabIndex={0} role="group" aria-label="Messages and decisions">
      <div class="parties" style={columnsFor(parties.length)}>
        <span />
        {parties.map(({ title, name, address }) => (
          <span key={title}>
            {title}
            {name !== null && (
              <small title={visibleText(namesByPlace.get(name)?.full ?? address ?? name)}>
                <Text value={named(name)} max={40} />
              </small>
            )}
            {address !== null && (
              <small class="place">
                <Text value={address} max={60} />
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
                <Time at={step.decision.at} afterMs={step.afterMs} />{' '}
                {visibleText(words(decisionText(step.decision)), 800)}
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
  gridTemplateColumns: `4.5rem repeat(${count * 2}, minmax(2.5rem, 1fr))`,
})

const Time = ({ at, afterMs }: { at: string; afterMs: number }) => (
  <time dateTime={at} title={clockText(at)}>
    {afterText(afterMs)}
  </time>
)

interface MessageProps {
  readonly step: Extract<LadderStep, { kind: 'message' }>
  readonly parties: readonly LadderParty[]
}

function Message({ step: { message, from, to, afterMs }, parties }: MessageProps) {
  const [left, right] = [Math.min(from, to), Math.max(from, to)]
  return (
    <details>
      <summary style={columnsFor(parties.length)}>
        <Time at={message.at} afterMs={afterMs} />
        <span
          title={visibleText(message.summary)}
          class={`arrow ${from < to ? 'right' : 'left'}`}
          style={{ gridColumn: `${left * 2 + 3} / ${right * 2 + 3}` }}
        >
          <span class="hidden">
            {parties[from]?.title} to {parties[to]?.title}:{' '}
          </span>
          {visibleText(shortSummary(message.summary), 80)}
        </span>
      </summary>
      <p>
        <small>
          {clockText(message.at)}: {message.direction} by {visibleText(message.transport)},{' '}
          {visibleText(message.address)}
        </small>
      </p>
      <pre tabIndex={0}>{visibleLines(message.text, MAX_MESSAGE)}</pre>
    </details>
  )
}
