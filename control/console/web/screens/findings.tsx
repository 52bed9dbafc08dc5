/**
 * Lists findings, each with its start, evidence and the next step; below them, why calls were
 * refused.
 */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get, type ConsoleAnswer } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { may } from '../api/session.ts'
import type { Anomalies, CallSummary, FoundFinding, KeptFinding, Telemetry } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { DAY_MS, plural, shortMomentText, sinceText } from '../parts/format.ts'
import { useResource, useView, type Resource } from '../parts/resource.ts'
import { Badge, Problem, Text } from '../parts/text.tsx'
import { FindingActions } from './finding-actions.tsx'
import { useMarks } from './finding-history.tsx'
import {
  addressesOf,
  adviceText,
  evidenceOf,
  findingText,
  findingTitle,
  handledText,
  markText,
  stepOf,
  subjectOf,
} from './finding-words.ts'
import { denialPhrase } from './denial-words.ts'
import { nameOfNode, useNodeNames } from './names.ts'

/** They are found in the records of two weeks. */
const REFRESH_MS = 30_000

const tones = { critical: 'bad', high: 'bad', medium: 'warn', low: 'plain' } as const

type Found = Pick<Anomalies, 'findings'>

const none: ConsoleAnswer<Found> = { kind: 'ok', data: { findings: [] }, meta: undefined }

/** None where the user may not ask. */
export const useFindings = (): Resource<Found> =>
  useResource(
    'anomalies',
    () => (may('cdrs:read') ? get<Found>('/anomalies?limit=50') : Promise.resolve(none)),
    { everyMs: REFRESH_MS },
  )

interface FindingsProps {
  readonly telemetry: Telemetry | undefined
  readonly findings: Resource<Found>
}

export function Findings({ telemetry, findings: { data, problem, reload } }: FindingsProps) {
  const names = useNodeNames()
  const kept = useMarks(may('cdrs:read'))
  const silent = silentNodes(telemetry)
  // A node that has fallen silent is a finding: it is not waited for.
  useEffect(() => void (data.value !== undefined && reload()), [silent.join()])
  const found = data.value?.findings ?? []
  const context = { nodes: names, present: now() }
  const known = new Set(found.map((each) => subjectOf(each)).map(({ id }) => id))
  const alerts = [
    ...silent
      .filter((destination) => !known.has(destination))
      .map((destination) => `PBX node ${nameOfNode(names, destination).full} does not answer`),
    ...takenOut(telemetry)
      .filter((destination) => !known.has(destination))
      .map(
        (destination) =>
          `PBX node ${nameOfNode(names, destination).full} was taken out of service by hand`,
      ),
    ...(telemetry === undefined ? [] : platformAlerts(telemetry)),
  ]
  const marks = new Map(kept.data.value?.findings.map((each) => [each.id, each]))
  const markOf = ({ id }: FoundFinding) => (id === null ? undefined : marks.get(id))
  const isSnoozed = ({ state }: FoundFinding): boolean => state === 'snoozed'
  const listed = found.filter((each) => !isSnoozed(each))
  const snoozed = found.filter(isSnoozed)
  const unhandled = listed.filter((each) => each.handled_by === null)
  const open = unhandled.filter(({ state }) => state !== 'acknowledged')
  const acknowledged = unhandled.filter((each) => !open.includes(each))
  const handled = listed.filter((each) => !unhandled.includes(each))
  const onDone = (): void => {
    reload()
    kept.reload()
  }
  const itemOf = (each: FoundFinding) => (
    <Item
      key={`${each.kind} ${each.subject} ${each.next.tool}`}
      finding={each}
      mark={markOf(each)}
      onDone={onDone}
      {...context}
    />
  )
  const isLoading = data.value === undefined && problem.value === undefined
  const count = alerts.length + open.length
  return (
    <section aria-labelledby="wrong">
      <h2 id="wrong">What is wrong now</h2>
      <Problem message={problem.value} />
      <p role="status">
        {isLoading || telemetry === undefined ? (
          'Loading …'
        ) : count === 0 ? (
          <Badge tone="good">Nothing needs attention</Badge>
        ) : (
          <strong>{plural(count, 'thing needs attention', 'things need attention')}</strong>
        )}
      </p>
      {alerts.length > 0 && (
        <div class="alerts">
          {alerts.map((text) => (
            <Badge key={text} tone="bad">
              <Text value={text} />
            </Badge>
          ))}
          {(silent.length > 0 || takenOut(telemetry).length > 0) && (
            <a href={pathOf('nodes')}>PBX nodes</a>
          )}
        </div>
      )}
      {listed.length > 0 && (
        <ol class="findings">{[...open, ...acknowledged, ...handled].map(itemOf)}</ol>
      )}
      {snoozed.length > 0 && (
        <details>
          <summary>{plural(snoozed.length, 'finding is', 'findings are')} snoozed</summary>
          <ol class="findings">{snoozed.map(itemOf)}</ol>
        </details>
      )}
    </section>
  )
}

interface ItemProps extends Pick<Parameters<typeof findingTitle>[1], 'nodes' | 'present'> {
  readonly finding: FoundFinding
  /** Undefined: nobody has marked it. */
  readonly mark: KeptFinding | undefined
  readonly onDone: () => void
}

/** A finding of which the user, or a change in force, says that it is dealt with. */
function StateBadge({
  finding: { handled_by: handled, state, severity },
}: Pick<ItemProps, 'finding'>) {
  if (state === 'snoozed') return <Badge tone="plain">snoozed</Badge>
  if (handled !== null) return <Badge tone="good">handled</Badge>
  if (state === 'acknowledged') return <Badge tone="plain">acknowledged</Badge>
  return <Badge tone={tones[severity]}>{severity}</Badge>
}

function Item({ finding, mark, onDone, ...context }: ItemProps) {
  const isOpen = finding.handled_by === null
  const isLoud = isOpen && (finding.state === null || finding.state === 'open')
  const step = stepOf(finding, context)
  const addresses = addressesOf(finding)
  const title = findingTitle(finding, context)
  const marked = mark === undefined ? '' : markText(mark)
  const { first_at: first, last_at: last, severity } = finding
  return (
    <li class={isLoud ? `finding ${severity}` : 'finding'}>
      <h3>
        <StateBadge finding={finding} /> <Text value={title} max={200} />
      </h3>
      <p>
        <Text value={findingText(finding)} max={800} />
      </p>
      <p>
        <Text value={isOpen ? adviceText(finding) : handledText(finding)} max={500} />
      </p>
      {marked !== '' && (
        <p>
          <Text value={marked} max={700} />
        </p>
      )}
      <p class="links">
        <span>
          Since{' '}
          <time dateTime={first} title={shortMomentText(first)}>
            {sinceText(first, context.present)}
          </time>
          , last seen{' '}
          <time dateTime={last} title={shortMomentText(last)}>
            {sinceText(last, context.present)}
          </time>
        </span>
        {addresses !== '' && (
          <span>
            <Text value={addresses} />
          </span>
        )}
        {evidenceOf(finding).map(({ text, to }) => (
          <a key={to} href={to}>
            <Text value={text} max={60} />
          </a>
        ))}
        {isOpen ? (
          <a class="step" href={step.to}>
            {step.text}
          </a>
        ) : (
          <a href={pathOf('changes')}>Changes</a>
        )}
        <FindingActions finding={finding} title={title} onDone={onDone} />
      </p>
    </li>
  )
}

const silentNodes = (telemetry: Telemetry | undefined): readonly string[] =>
  telemetry?.nodes.flatMap(({ state, destination }) =>
    state === 'probing' ? [destination] : [],
  ) ?? []

const takenOut = (telemetry: Telemetry | undefined): readonly string[] =>
  telemetry?.nodes.flatMap(({ state, destination }) =>
    state === 'inactive' ? [destination] : [],
  ) ?? []

/** Beyond it, calls are set up noticeably later. */
const LAG_ALERT_MS = 100

function platformAlerts({ relays, billing, event_loop: loop, this_node: instance }: Telemetry) {
  const lost = relays.filter(({ alive }) => !alive).length
  return [
    ...(instance.condition === 'fenced'
      ? [`Another process has the name of ${instance.name}`]
      : []),
    ...(instance.condition === 'unheard'
      ? [`The database server does not answer ${instance.name}`]
      : []),
    ...(lost > 0 ? [`${plural(lost, 'media relay does', 'media relays do')} not answer`] : []),
    ...((billing?.commit_failures ?? 0) > 0 ? ['Records cannot be stored'] : []),
    ...(loop.lag_p99_ms > LAG_ALERT_MS
      ? [`The event loop is ${Math.round(loop.lag_p99_ms)} ms late`]
      : []),
  ]
}

/** Lists the refusals of the last 24 hours, each with its calls. */
export function Refusals() {
  const openedAt = useSignal(now())
  const words = new URLSearchParams({
    start_date: new Date(openedAt.value - DAY_MS).toISOString(),
    // The end is not known yet.
    end_date: new Date(openedAt.value + DAY_MS).toISOString(),
    group_by: 'denial_code',
  })
  const { data } = useView<CallSummary>(`/reports/calls?${words}`, { everyMs: REFRESH_MS })
  // A call that was answered has its code from its end, such as that of a test call.
  const refused = (data.value?.groups ?? []).flatMap(({ group, calls, answered }) =>
    group === null || calls === answered ? [] : [{ code: group, count: calls - answered }],
  )
  if (refused.length === 0) return null
  return (
    <section aria-labelledby="refused">
      <h2 id="refused">Why calls were refused in the last 24 hours</h2>
      <p class="links">
        {refused.map(({ code, count }) => (
          <a key={code} href={pathOf('history', undefined, { by: 'cause', for: code })}>
            <Text value={denialPhrase(code) ?? code.replaceAll('_', ' ')} />:{' '}
            {plural(count, 'call')}
          </a>
        ))}
      </p>
    </section>
  )
}
