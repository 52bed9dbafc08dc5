/** One call: which party has sent what, and why. */
import { get, getBare, type Answer } from '../../api/api.ts'
import type { CallRecord, CallReport } from '../../api/api-types.ts'
import { may } from '../../app/session.ts'
import { now } from '../../browser.ts'
import { clockText, durationText, figureText, moneyText, unitText } from '../../parts/format.ts'
import { useResource } from '../../parts/resource.ts'
import { Fact, Moment, Problem, Text } from '../../parts/text.tsx'
import { visibleLines, visibleText } from '../../parts/visible-text.ts'
import { decisionText } from './decision-words.ts'
import { ladderOf, type Entry, type Step } from './ladder.ts'

interface Trace {
  readonly call_uuid: string
  readonly legs: readonly string[]
  readonly is_complete: boolean
  readonly entries: readonly Entry[]
}

/** A SIP message over UDP is not longer. */
const MAX_MESSAGE = 65_536
const YEAR_MS = 366 * 86_400_000

export function CallScreen({ uuid }: { uuid: string }) {
  const trace = useResource(uuid, () => get<Trace>(`/calls/${encodeURIComponent(uuid)}/trace`), {
    events: /^call\./,
  })
  const record = useResource(uuid, () => recordOf(uuid), { events: /^call\.ended$/ })
  const { value } = trace.data
  return (
    <>
      <p>
        <code>{visibleText(uuid)}</code>
      </p>
      {record.data.value?.[0] !== undefined && <Record record={record.data.value[0]} />}
      <h2>What happened</h2>
      <Problem message={trace.problem.value} />
      {value !== undefined && !value.is_complete && (
        <p class="notice">The first messages of this call are no longer kept.</p>
      )}
      {value !== undefined && <Ladder entries={value.entries} />}
    </>
  )
}

async function recordOf(uuid: string): Promise<Answer<readonly CallRecord[]>> {
  if (!may('cdrs:read')) return { kind: 'ok', data: [], meta: undefined }
  const present = now()
  const words = new URLSearchParams({
    start_date: new Date(present - YEAR_MS).toISOString(),
    end_date: new Date(present).toISOString(),
    call_uuid: uuid,
  })
  const answer = await getBare<CallReport>(`/reports/cdrs?${words.toString()}`)
  return answer.kind === 'ok' ? { ...answer, data: answer.data.records } : answer
}

function Record({ record }: { record: CallRecord }) {
  return (
    <dl class="facts">
      <Fact name="From">
        <Text value={record.caller_id_number} max={60} />
      </Fact>
      <Fact name="To">
        <Text value={record.destination_number} max={60} />
      </Fact>
      <Fact name="Started">
        <Moment at={record.start_stamp} />
      </Fact>
      <Fact name="Result">
        {record.disposition.toLowerCase()} {record.sip_code}
      </Fact>
      <Fact name="Reason">
        <Text value={record.denial_code ?? record.hangup_cause} />
      </Fact>
      <Fact name="Talk time">{durationText(record.billsec)}</Fact>
      <Fact name="Cost">{moneyText(record.cost_exact, record.currency)}</Fact>
      <Fact name="Post-dial delay">{unitText(record.post_dial_delay_ms, 'ms')}</Fact>
      <Fact name="MOS">{figureText(record.mos_score, 2)}</Fact>
      <Fact name="Jitter">{unitText(record.jitter_ms, 'ms')}</Fact>
      <Fact name="Packet loss">{unitText(record.packet_loss_pct, '%')}</Fact>
      <Fact name="Through">
        <Text value={record.carrier ?? record.node} max={100} />
      </Fact>
      <Fact name="Call-ID">
        <Text value={record.call_id} max={200} />
      </Fact>
    </dl>
  )
}

function Ladder({ entries }: { entries: readonly Entry[] }) {
  const { parties, steps } = ladderOf(entries)
  return (
    <div class="ladder wide" tabIndex={0} role="group" aria-label="Messages and decisions">
      <div class="parties" style={columnsFor(parties.length)} aria-hidden="true">
        <span />
        {parties.map((party) => (
          <span key={party}>{party}</span>
        ))}
      </div>
      <ol>
        {steps.map((step, index) => (
          <li key={index}>
            <StepLine step={step} parties={parties} />
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

function StepLine({ step, parties }: { step: Step; parties: readonly string[] }) {
  if (step.kind === 'decision')
    return (
      <p class="decision">
        <time>{clockText(step.decision.at)}</time> {visibleText(decisionText(step.decision), 500)}
      </p>
    )
  const { message, from, to } = step
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
            {parties[from]} to {parties[to]}:{' '}
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
