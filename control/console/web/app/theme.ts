/** Light, dark, or as the system is; stored in this browser. */

export const themes = ['as the system', 'light', 'dark'] as const

const STORED = 'tollgate.theme'

export const storedTheme = (): (typeof themes)[number] =>
  themes.find((each) => each === localStorage.getItem(STORED)) ?? themes[0]

export function setTheme(theme: string): void {
  localStorage.setItem(STORED, theme)
  applyTheme()
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = storedTheme()
}
