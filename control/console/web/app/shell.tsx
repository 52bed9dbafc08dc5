/** The frame of every screen: navigation, the signed-in user, and whether the data is live. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { every } from '../api/browser.ts'
import { connection, readEvents, unreachable } from '../api/live.ts'
import type { User } from '../api/views.ts'
import { visibleText } from '../parts/visible-text.ts'
import { pathOf } from '../parts/address.ts'
import { Head, ShownPage } from '../parts/page-head.tsx'
import { Problem } from '../parts/text.tsx'
import { Toasts } from '../parts/toast.tsx'
import { findSetup, isIncomplete } from '../screens/setup.ts'
import { later } from '../parts/later.tsx'
import { address, go } from '../parts/router.ts'
import { type Screen, visibleScreens } from './screens.ts'
import { findSession, keepSession, may, session, sessionEnded } from '../api/session.ts'
import { Account } from './account.tsx'
import { KeysHelp, useKeys } from './keys.tsx'
import { Menu } from './menu.tsx'
import { Palette } from './palette.tsx'
import { SignIn } from './sign-in.tsx'

const ShownScreen = later(async () => (await import('./all-screens.tsx')).ShownScreen)

export function App() {
  switch (session.value.kind) {
    case 'unknown':
      return <main id="main" aria-busy="true" />
    case 'unanswered':
      return <Unanswered message={session.value.message} />
    case 'signed-out':
      return <SignIn />
    case 'signed-in':
      return <Shell key={session.value.user.id} user={session.value.user} />
  }
}

const ASK_AGAIN_MS = 5_000

/** Nobody has to sign in again because the server was busy for a moment. */
function Unanswered({ message }: { message: string }) {
  useEffect(() => every(ASK_AGAIN_MS, () => void findSession()), [])
  return (
    <main id="main" class="stack">
      <Problem message={message} />
      <p>
        <button type="button" onClick={() => void findSession()}>
          Try again
        </button>
      </p>
    </main>
  )
}

function Shell({ user }: { user: User }) {
  useEffect(keepSession, [])
  useEffect(() => (may('calls:read') ? readEvents(user.id, sessionEnded) : undefined), [])
  const screens = visibleScreens()
  const isFinding = useSignal(false)
  const isHelping = useSignal(false)
  const find = () => void (isFinding.value = true)
  useKeys({ screens, onFind: find, onHelp: () => void (isHelping.value = true) })
  const { screen: wanted, item } = address.value
  const screen = screens.find(({ name }) => wanted === '' || name === wanted)
  const name = screen?.name ?? wanted
  useStart(name)
  const title =
    (item === undefined ? screen?.title : screen?.oneTitle) ?? screen?.title ?? 'Not found'
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <button type="button" class="menu-button" popovertarget="menu">
          Menu
        </button>
        <a class="brand" href="/console">
          Tollgate
        </a>
        <button type="button" class="find" aria-haspopup="dialog" onClick={find}>
          Find anything <kbd aria-hidden="true">/</kbd>
        </button>
        <ConnectionState />
        <Account user={user} />
      </header>
      {isFinding.value && (
        <Palette user={user} screens={screens} onClose={() => (isFinding.value = false)} />
      )}
      {isHelping.value && <KeysHelp screens={screens} onClose={() => (isHelping.value = false)} />}
      <Menu screens={screens} current={name === 'calls' && item !== undefined ? 'history' : name} />
      <Unreachable />
      <Content
        title={title}
        back={item === undefined ? undefined : listOf(screen, screens)}
        key={`${name}/${item ?? ''}`}
      >
        {screen === undefined ? (
          <p>There is no such screen, or you may not see it.</p>
        ) : (
          <ShownScreen name={name} item={item} />
        )}
      </Content>
      <Toasts />
    </>
  )
}

/** The list that a thing of a screen is in: calls that have ended are in another one. */
function listOf(screen: Screen | undefined, screens: readonly Screen[]) {
  const name = screen?.name === 'calls' ? 'history' : screen?.name
  const list = screens.find((each) => each.name === name)
  return list && { href: pathOf(list.name), title: list.title }
}

/** Stands over every screen: any of them may show less than there is. */
const Unreachable = () => (
  <p role="status" class="notice banner" hidden={unreachable.value.length === 0}>
    {unreachable.value.length > 0 &&
      `No answer from ${unreachable.value.map((name) => visibleText(name)).join(', ')}: what only ${
        unreachable.value.length === 1 ? 'this node knows' : 'these nodes know'
      }, such as their live calls, is missing here.`}
  </p>
)

/** A new system opens with what is to be done; no other screen waits for that to be known. */
function useStart(screen: string): void {
  const isAsked = useRef(false)
  useEffect(() => {
    if (isAsked.current || screen !== 'now') return
    isAsked.current = true
    void showStart()
  }, [screen])
}

async function showStart(): Promise<void> {
  await findSetup()
  if (isIncomplete() && location.pathname === '/') go(pathOf('start'))
}

interface ContentProps {
  readonly title: string
  readonly back: { readonly href: string; readonly title: string } | undefined
  readonly children: ComponentChildren
}

/** The first screen is read with the page itself; later ones are where links have led. */
let hasShown = false

/** A screen that has no head of its own has this one. */
function Content({ title, back, children }: ContentProps) {
  const owner = useSignal<object | undefined>(undefined)
  const isFollowed = useRef(hasShown)
  useEffect(() => {
    hasShown = true
  }, [])
  const page = { title, back, owner, isFollowed }
  return (
    <main id="main">
      <ShownPage.Provider value={page}>
        {owner.value === undefined && <Head page={page} />}
        {children}
      </ShownPage.Provider>
    </main>
  )
}

const connectionTexts = {
  connecting: 'Connecting …',
  live: 'Live',
  lost: 'Connection lost, trying again',
} as const

function ConnectionState() {
  if (!may('calls:read')) return null
  return (
    <span class={`connection ${connection.value}`} role="status">
      {connectionTexts[connection.value]}
    </span>
  )
}
