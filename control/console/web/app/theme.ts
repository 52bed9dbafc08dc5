/** Light, dark, or as the system is; stored in this browser. */
import { effect, signal } from '@preact/signals'

export const themes = ['as the system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const STORED = 'tollgate.theme'

const themeOf = (text: string | null): Theme => themes.find((each) => each === text) ?? themes[0]

export const theme = signal<Theme>(themeOf(localStorage.getItem(STORED)))

export const setTheme = (text: string): void => {
  theme.value = themeOf(text)
}

export function applyTheme(): void {
  effect(() => {
    localStorage.setItem(STORED, theme.value)
    document.documentElement.dataset['theme'] = theme.value
  })
}
