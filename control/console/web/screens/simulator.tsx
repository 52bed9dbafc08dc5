/** The path that a call from A to B would take now. The query is in the address. */
import { Fragment } from 'preact'
import { send, type ConsoleAnswer } from '../api/api.ts'
import type { Simulation } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { Field, onForm, textIn } from '../parts/form.tsx'
import { durationText, moneyText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { localTime } from '../parts/schema-fields.ts'
import { Badge, Facts, Problem, Short, Text } from '../parts/text.tsx'
import { hookText } from './decision-words.ts'
import { DenialCode } from './denial-code.tsx'
import { nameOfNode, useNodeNames } from './names.ts'
import {
  huntingText,
  orderText,
  payerText,
  priceText,
  sourceText,
  verdictText,
  whyText,
} from './simulation-words.ts'

/** The fields have the same names in the address and in the API. */
const names = ['from', 'to', 'source', 'call_id', 'at'] as const
type Question = Readonly<Partial<Record<(typeof names)[number], string>>>

export function SimulatorScreen() {
  const { query } = address.value
  const asked = Object.fromEntries(
    names.flatMap((name) => (query[name] ? [[name, query[name]]] : [])),
  ) as Question
  const key = JSON.stringify(asked)
  const result = useResource(key, () => simulate(asked))
  return (
    <>
      <p>Nothing is called and nothing changes: the rules that decide on calls are asked.</p>
      <QuestionForm key={key} asked={asked} onAsk={result.reload} />
      <Problem message={result.problem.value} />
      <div role="status">
        {result.problem.value === undefined && result.data.value !== undefined && (
          <Result simulation={result.data.value} />
        )}
      </div>
    </>
  )
}

const simulate = (asked: Question): Promise<ConsoleAnswer<Simulation | undefined>> =>
  asked.from === undefined || asked.to === undefined
    ? Promise.resolve({ kind: 'ok', data: undefined, meta: undefined })
    : send<Simulation>('POST', '/telephony/simulate', asked)

/** An address may say something that is no time. */
const momentIn = (at = ''): string => (Number.isNaN(Date.parse(at)) ? '' : localTime(at))

function QuestionForm({ asked, onAsk }: { asked: Question; onAsk: () => void }) {
  const submit = onForm((form) => {
    const text = (name: string): string => {
      const entered = textIn(form, name)
      return name === 'at' && entered !== '' ? new Date(entered).toISOString() : entered
    }
    const given = Object.fromEntries(names.map((name) => [name, text(name) || undefined]))
    if (names.every((name) => given[name] === asked[name])) onAsk()
    else setQuery(given)
  })
  const field = (name: (typeof names)[number]) => ({
    name,
    defaultValue: asked[name] ?? '',
    autoComplete: 'off',
    maxLength: 300,
  })
  return (
    <form class="fields question" onSubmit={submit}>
      <Field label="From" {...field('from')} required />
      <Field label="To" {...field('to')} required />
      <Field
        label="Source"
        hint="carrier, address, or extension@domain; chosen if empty"
        {...field('source')}
      />
      <Field label="Call-ID" hint="optional" {...field('call_id')} />
      <Field
        label="At the rates of"
        hint="in your time zone; optional"
        {...field('at')}
        type="datetime-local"
        defaultValue={momentIn(asked.at)}
      />
      <p class="buttons">
        <button class="primary">Simulate</button>
      </p>
    </form>
  )
}

type Invite = NonNullable<Simulation['candidates'][number]['invite']>

/** Whether the candidate is tried, and how its INVITE is signed. */
function signedText(signature: Simulation['candidates'][number]['signature']): string {
  if (signature === null) return 'yes'
  return signature === 'unsigned' ? 'yes, without a signature' : `yes, signed as ${signature}`
}

/** A loss is marked. */
function Margin({ exact, currency }: { exact: string | null; currency: string | null }) {
  const text = moneyText(exact, currency)
  return exact?.startsWith('-') === true ? <Badge tone="bad">{text}, a loss</Badge> : <>{text}</>
}

function Result({ simulation }: { simulation: Simulation }) {
  const { payment, candidates, passed_over: passed, verdict, set_id: setId } = simulation
  const isCustomerShown = payment.customer_id !== null && may('customers:read')
  const payer = <Text value={payerText(payment)} max={100} />
  return (
    <>
      <h2>{verdictText(simulation)}</h2>
      <Facts
        of={{
          Verdict: (
            <Badge tone={verdict === 'goes_on' ? 'good' : 'bad'}>
              {verdict === 'goes_on' ? 'goes on' : verdict}
            </Badge>
          ),
          'Denial code': simulation.code !== null && <DenialCode code={simulation.code} />,
          Source: (
            <>
              <Text value={sourceText(simulation.source)} max={120} />
              <OtherSources names={simulation.other_sources} />
            </>
          ),
          Hooks: simulation.hooks.length > 0 && (
            <Text
              value={simulation.hooks.map((each) => hookText({ ...each })).join(' ')}
              max={400}
            />
          ),
          Direction: `${simulation.emergency ? 'emergency, ' : ''}${simulation.direction}`,
          Payer: isCustomerShown ? (
            <a href={pathOf('customers', String(payment.customer_id))}>{payer}</a>
          ) : (
            payer
          ),
          Price: priceText(payment),
          'A minute costs the customer': moneyText(
            payment.price_exact,
            payment.rate?.currency ?? null,
          ),
          'Longest paid call':
            payment.longest_seconds === null
              ? 'not limited'
              : durationText(payment.longest_seconds),
        }}
      />
      {candidates.length > 0 && <Candidates simulation={simulation} />}
      {passed.length > 0 && (
        <section aria-labelledby="others">
          <h2 id="others">Why not the others</h2>
          <ul>
            {passed.map(({ kind, name, uri, why }, index) => (
              <li key={index}>
                {kind}{' '}
                <Text value={kind === 'gateway' ? `${name}, ${uri ?? ''}` : name} max={120} />:{' '}
                {whyText[why]}
              </li>
            ))}
          </ul>
        </section>
      )}
      {setId !== null && may('dispatcher:read') && (
        <p>
          <a href={pathOf('nodes')}>Nodes of set {setId}</a>
        </p>
      )}
    </>
  )
}

/** The source was chosen: others could be meant. */
function OtherSources({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null
  const { query } = address.value
  return (
    <small>
      {' '}
      chosen; or{' '}
      {names.map((name, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <a href={pathOf('simulator', undefined, { ...query, source: name })}>
            <Text value={name} max={60} />
          </a>
        </span>
      ))}
    </small>
  )
}

type Candidate = Simulation['candidates'][number]

const expectedTitles = ['Expected call', 'Sold for', 'Bought for', 'Left'] as const

/** A call of the usual length: what it would bring. */
function Expected({ of: call }: { of: Candidate['expected'] }) {
  if (call === null) return <td colSpan={expectedTitles.length} />
  const { seconds, margin_exact: left, currency, is_below_margin: isTooLittle } = call
  const amount = (exact: string | null, each: string | null) =>
    exact === null ? 'not known' : moneyText(exact, each)
  return (
    <>
      <td class="figure">{unitText(seconds, 's')}</td>
      <td class="figure">{amount(call.price_exact, currency)}</td>
      <td class="figure">{amount(call.cost_exact, call.cost_currency)}</td>
      <td class="figure">
        {isTooLittle ? (
          <Badge tone="bad">{amount(left, currency)}, too little</Badge>
        ) : (
          amount(left, currency)
        )}
      </td>
    </>
  )
}

interface WordsProps {
  readonly of: Candidate
  readonly span: number
  readonly currency: string | null
}

/** A second row, of the width of the table: what needs sentences. */
function Words({ of: each, span, currency }: WordsProps) {
  const minute = each.expected !== null && each.carrier_price_exact !== null
  const said = [
    minute &&
      `A minute: the carrier takes ${moneyText(each.carrier_price_exact, currency)}, ` +
        `${moneyText(each.margin_exact, currency)} left.`,
    each.withheld !== null && `Not called: ${each.withheld_text ?? each.withheld}.`,
    each.low_quality !== null && `Tried last: ${each.low_quality}.`,
    each.presented !== null &&
      `Shown ${each.presented.number || 'anonymous'}: ${each.presented.why}.`,
    each.hunting !== null && `When it does not take the call: ${huntingText(each.hunting)}.`,
  ].filter((text) => text !== false)
  if (said.length === 0) return null
  return (
    <tr class="said">
      <td />
      <td colSpan={span}>
        <Text value={said.join(' ')} max={1_000} />
      </td>
    </tr>
  )
}

function Candidates({ simulation: { candidates, order, payment } }: { simulation: Simulation }) {
  const nodes = useNodeNames()
  const currency = payment.rate?.currency ?? null
  // A tenant sees no costs, and a node of the platform has none.
  const isExpected = candidates.some(({ expected }) => expected !== null)
  // Beside what a whole call brings, the minute is told in words.
  const hasCosts = !isExpected && candidates.some((each) => each.carrier_price_exact !== null)
  return (
    <section aria-labelledby="candidates">
      <h2 id="candidates">Destinations in order</h2>
      {candidates.length > 1 && <p>{orderText[order]}</p>}
      <div class="wide destinations" tabIndex={0} role="group" aria-label="Destinations, table">
        <table>
          <thead>
            <tr>
              <th scope="col" class="figure">
                No.
              </th>
              <th scope="col">Destination</th>
              <th scope="col">By</th>
              <th scope="col">Number sent</th>
              {hasCosts && (
                <>
                  <th scope="col" class="figure">
                    Carrier, a minute
                  </th>
                  <th scope="col" class="figure">
                    Margin, a minute
                  </th>
                </>
              )}
              {isExpected &&
                expectedTitles.map((title) => (
                  <th key={title} scope="col" class="figure">
                    {title}
                  </th>
                ))}
              <th scope="col" class="figure">
                First for
              </th>
              <th scope="col">Called</th>
            </tr>
          </thead>
          <tbody>
            {candidates.map((each, index) => (
              <Fragment key={index}>
                <tr>
                  <td class="figure">{index + 1}</td>
                  <td>
                    {each.kind === 'node' ? 'PBX node' : each.kind}{' '}
                    <Short value={nameOfNode(nodes, each.uri).full} title={each.uri} />
                  </td>
                  <td>
                    <Text
                      value={
                        each.route === null ? each.name : `${each.name ?? ''}, route ${each.route}`
                      }
                    />
                  </td>
                  <td>
                    <Text value={each.number ?? 'as dialled'} />
                  </td>
                  {hasCosts && (
                    <>
                      <td class="figure">{moneyText(each.carrier_price_exact, currency)}</td>
                      <td class="figure">
                        <Margin exact={each.margin_exact} currency={currency} />
                      </td>
                    </>
                  )}
                  {isExpected && <Expected of={each.expected} />}
                  <td class="figure">{Math.round(each.share * 100)} %</td>
                  <td>{each.withheld === null ? signedText(each.signature) : 'no'}</td>
                </tr>
                <Words
                  of={each}
                  currency={currency}
                  span={3 + (hasCosts ? 2 : 0) + (isExpected ? 4 : 0) + 2}
                />
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {candidates.map(
        (each, index) =>
          each.invite !== null && (
            <details key={index} class="more">
              <summary>
                INVITE to destination {index + 1}
                {each.ruled_by.length > 0 && `, changed by rules ${each.ruled_by.join(', ')}`}
              </summary>
              <pre>{inviteText(each.invite)}</pre>
            </details>
          ),
      )}
    </section>
  )
}

const inviteText = ({ uri, headers }: Invite): string =>
  [`INVITE ${uri}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)].join(
    '\n',
  )
