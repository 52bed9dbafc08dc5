/**
 * The side menu: the screens in their groups. On phones it is a popover, which the browser opens,
 * closes and focuses.
 */
import { useEffect, useRef } from 'preact/hooks'
import { pathOf } from '../parts/address.ts'
import { groups, type Screen } from './screens.ts'

/** Pages of their own, which need no session. */
const pages = [
  { href: '/guide', title: 'Guide' },
  { href: '/docs', title: 'API reference' },
]

export function Menu({ screens, current }: { screens: readonly Screen[]; current: string }) {
  const menu = useRef<HTMLElement>(null)
  useEffect(() => menu.current?.hidePopover(), [current])
  const links = (group: Screen['group']) =>
    screens
      .filter((screen) => screen.group === group)
      .map(({ name, title }) => (
        <a
          key={name}
          href={pathOf(name)}
          aria-current={name === current ? 'page' : undefined}
          // The screen is there already.
          onClick={() => menu.current?.hidePopover()}
        >
          {title}
        </a>
      ))
  return (
    <nav id="menu" class="side" popover="auto" aria-label="Screens" ref={menu}>
      <div>{links(undefined)}</div>
      {groups.map((group) => {
        const ofGroup = links(group)
        const isLast = group === 'Platform'
        if (ofGroup.length === 0 && !isLast) return null
        return (
          <section key={group} aria-labelledby={`menu-${group}`}>
            <h2 id={`menu-${group}`}>{group}</h2>
            {ofGroup}
            {isLast &&
              pages.map(({ href, title }) => (
                <a key={href} href={href}>
                  {title}
                </a>
              ))}
          </section>
        )
      })}
    </nav>
  )
}
