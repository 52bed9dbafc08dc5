/** Small pieces that all screens use. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { absent, clockText, momentText, shortMomentText, type Tone } from './format.ts'
import { visibleText } from './visible-text.ts'

/** Text of strangers: its direction ends with it. */
export function Text({ value, max }: { value: string | null | undefined; max?: number }) {
  if (value === null || value === undefined || value === '') return <>{absent}</>
  return <bdi>{visibleText(value, max)}</bdi>
}

/** Text that may be long: cut by the width of its place, whole in its tooltip. */
export const Short = ({
  value,
  title = value,
}: {
  value: string | null | undefined
  title?: string | null | undefined
}) => (
  <span class="short" title={title == null ? undefined : visibleText(title, 500)}>
    <Text value={value} max={300} />
  </span>
)

interface MomentProps {
  readonly at: string | null
  readonly isToday?: boolean
  /** Whether the year is left out. */
  readonly isShort?: boolean
  /** IANA name; absent: that of the viewer. */
  readonly zone?: string | undefined
}

export function Moment({ at, isToday, isShort, zone }: MomentProps) {
  if (at === null) return <>{absent}</>
  const inZone = (moment: string): string => momentText(moment, zone)
  const text = isToday === true ? clockText : isShort === true ? shortMomentText : inZone
  return (
    <time dateTime={at} title={inZone(at)}>
      {text(at)}
    </time>
  )
}

/** A state in words; the colour only repeats it. */
export const Badge = ({ tone, children }: { tone: Tone; children: ComponentChildren }) => (
  <span class={`badge ${tone}`}>{children}</span>
)

/** Why something could not be shown or done. */
export const Problem = ({ message }: { message: string | undefined }) => (
  <p role="alert" class="problem" hidden={message === undefined}>
    {message === undefined ? '' : visibleText(message, 500)}
  </p>
)

/** Puts a text on the clipboard, and says whether it did. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const outcome = useSignal('')
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => (outcome.value = 'Copied'),
      () => (outcome.value = 'The browser does not allow it: select the text'),
    )
  }
  return (
    <>
      <button type="button" onClick={copy} aria-label={label}>
        Copy
      </button>{' '}
      <span role="status">{outcome.value}</span>
    </>
  )
}

/**
 * Values by their names, in this order, as one compact list; false: it is left out. `isBig`: for
 * the figures that a page is opened for.
 */
export const Facts = ({
  of,
  isBig,
}: {
  of: Readonly<Record<string, ComponentChildren>>
  isBig?: boolean
}) => (
  <dl class={isBig === true ? 'facts big' : 'facts'}>
    {Object.entries(of).map(
      ([name, value]) =>
        value !== false && (
          <div class="fact" key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
    )}
  </dl>
)
