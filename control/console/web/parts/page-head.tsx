/**
 * The head of a page: the name of what it shows as its heading, its state, and what may be done
 * with it. A screen without one of its own has the title of the menu as its head.
 */
import type { Signal } from '@preact/signals'
import { type ComponentChildren, createContext, type RefObject } from 'preact'
import { useContext, useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { Tone } from './format.ts'
import { Badge } from './text.tsx'
import { visibleText } from './visible-text.ts'

interface Page {
  /** Heading of a screen, and of a thing whose name is not known yet. */
  readonly title: string
  /** The list that the thing is in; undefined: the page shows no single thing. */
  readonly back?: { readonly href: string; readonly title: string } | undefined
  /** The one whose heading is that of the page. */
  readonly owner: Signal<object | undefined>
  /** Whether a link has led here: the heading takes the focus, so that it is read out. */
  readonly isFollowed: RefObject<boolean>
}

export const ShownPage = createContext<Page | undefined>(undefined)

interface PageHeadProps {
  /** Absent: the title of the screen. */
  readonly name?: string | null | undefined
  /** The state, by which colour, and why it is so. */
  readonly state?: readonly [tone: Tone, text: string] | undefined
  /** One sentence that says what the screen is for. */
  readonly about?: ComponentChildren
  /** The actions, the most usual one first. */
  readonly children?: ComponentChildren
}

/** A second head of a page has no heading: only the first one in it has. */
export function PageHead(props: PageHeadProps) {
  const page = useContext(ShownPage)
  const me = useRef({}).current
  useLayoutEffect(() => {
    if (page === undefined || page.owner.value !== undefined) return undefined
    page.owner.value = me
    return () => {
      if (page.owner.value === me) page.owner.value = undefined
    }
  }, [])
  if (page === undefined) return <>{props.children}</>
  const isOwner = page.owner.value === undefined || page.owner.value === me
  return isOwner ? <Head {...props} page={page} /> : <p class="buttons">{props.children}</p>
}

export function Head({ page, name, state, about, children }: PageHeadProps & { page: Page }) {
  const { title, back, isFollowed } = page
  const heading = useRef<HTMLHeadingElement>(null)
  const text = visibleText(name ?? title, 100)
  useEffect(() => {
    // A part of the page that is in use keeps the focus.
    const isUsed = document.getElementById('main')?.contains(document.activeElement) === true
    if (isFollowed.current && !isUsed) heading.current?.focus({ preventScroll: true })
  }, [])
  useEffect(() => {
    document.title = `${text} · Tollgate`
  }, [text])
  return (
    <header class="page-head">
      {back !== undefined && (
        <p class="crumb">
          <a href={back.href} aria-label={`Back to ${back.title}`}>
            ← {back.title}
          </a>
        </p>
      )}
      <div class="page-name">
        <h1 ref={heading} tabIndex={-1}>
          <bdi>{text}</bdi>
        </h1>
        {state !== undefined && <Badge tone={state[0]}>{state[1]}</Badge>}
      </div>
      <div class="page-actions">{children}</div>
      {about !== undefined && about !== '' && <div class="about">{about}</div>}
    </header>
  )
}
